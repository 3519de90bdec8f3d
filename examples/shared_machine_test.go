package examples_test

import (
	"bytes"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/examples/stock"
)

// sharedMachine is a mount namespace whose /etc/stockade and /dev/log are the test's own. The
// command in it is the built one, and the policy is root's: run by root, the test becomes an
// ordinary user inside; run by one, it is the root of a user namespace of its own, so that the
// limits are tested and the rights of the file are not.
type sharedMachine struct {
	base, home string
	log        *net.UnixConn
}

// setUp puts the folders of the test in place, in a root folder of its own: in a user
// namespace the machine's belongs to nobody that is known. What follows is the command.
const setUp = `set -e
base=$1; shift
for node in null zero full random urandom; do mount --bind /dev/$node "$base/dev/$node"; done
mount -t tmpfs none "$base/root"
cd "$base/root"
mkdir usr etc dev proc tmp
for name in bin sbin lib lib64; do [ ! -e /usr/$name ] || ln -s usr/$name $name; done
mount --rbind /usr usr
mount --rbind "$base/etc" etc
mount --rbind "$base/dev" dev
mount --rbind /proc proc
mount --rbind /tmp tmp
exec chroot . sh -c 'cd "$1"; shift; exec "$@"' sh "$base/repo" "$@"
`

func newSharedMachine(t *testing.T) *sharedMachine {
	t.Helper()
	m := &sharedMachine{base: openFolder(t)}
	m.home = filepath.Join(m.base, "home")
	for _, dir := range []string{"home", "root", "dev", "etc", "etc/stockade", "repo/.git", "repo/.stockade/profiles", "payroll", "open"} {
		if err := os.MkdirAll(filepath.Join(m.base, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// What a start reads of /etc, and no more: not the machine's secrets.
	for _, file := range []string{"passwd", "group", "nsswitch.conf", "ld.so.cache", "hosts", "host.conf", "resolv.conf"} {
		if text, err := os.ReadFile("/etc/" + file); err == nil {
			put(t, filepath.Join(m.base, "etc", file), string(text))
		}
	}
	for _, node := range []string{"null", "zero", "full", "random", "urandom"} {
		// A place for the node, which is bound over it.
		put(t, filepath.Join(m.base, "dev", node), "")
	}
	policy, err := os.ReadFile("shared-machine/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m.policy(t, strings.ReplaceAll(string(policy), "/srv/payroll", m.base+"/payroll"))
	m.log, err = net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(m.base, "dev", "log"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.log.Close() })
	if err := os.Chmod(filepath.Join(m.base, "dev", "log"), 0o666); err != nil { //nolint:gosec // as the real one
		t.Fatal(err)
	}
	put(t, filepath.Join(m.base, "payroll", "file"), "payroll\n")
	put(t, filepath.Join(m.base, "open", "file"), "open\n")
	if err := os.Symlink(m.base+"/payroll/file", filepath.Join(m.base, "open", "link")); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		for _, dir := range []string{"home", "repo", "open", "payroll"} {
			if out, err := exec.Command("chown", "-R", "65534:65534", filepath.Join(m.base, dir)).CombinedOutput(); err != nil {
				t.Fatalf("chown: %s", out)
			}
		}
	}
	return m
}

// openFolder is a temporary folder that an ordinary user can pass through.
func openFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; at != filepath.Clean(os.TempDir()) && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil { //nolint:gosec // the user of the test has to pass
			t.Fatal(err)
		}
	}
	return dir
}

// put writes a file that everybody may read.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // as files of /etc are
		t.Fatal(err)
	}
}

func (m *sharedMachine) policy(t *testing.T, text string) {
	t.Helper()
	put(t, filepath.Join(m.base, "etc", "stockade", "policy.yaml"), text)
}

// profile writes a file of the user's.
func (m *sharedMachine) profile(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(m.base, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, path, text)
	if os.Getuid() == 0 {
		for at := path; at != m.base; at = filepath.Dir(at) {
			if err := os.Chown(at, 65534, 65534); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// stockade runs the command in the machine, in the repository's folder.
func (m *sharedMachine) stockade(t *testing.T, env []string, words ...string) (stdout, stderr string, status int) {
	t.Helper()
	args := []string{"--mount"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	args = append(args, "sh", "-c", setUp, "sh", m.base)
	if os.Getuid() == 0 {
		args = append(args, "setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
	}
	args = append(append(args, "env", "-i", "PATH=/usr/bin:/bin", "HOME="+m.home), env...)
	args = append(append(args, m.launcher(t)), words...)
	cmd := exec.Command("unshare", args...)
	cmd.Dir = filepath.Join(m.base, "repo")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// launcher is the built command, at a place that the user can reach.
func (m *sharedMachine) launcher(t *testing.T) string {
	t.Helper()
	path := filepath.Join(m.base, "stockade")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	built, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(built)
	if err == nil {
		err = os.WriteFile(path, data, 0o755) //nolint:gosec // a program
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// logged reads the lines that the machine's log got.
func (m *sharedMachine) logged(t *testing.T) string {
	t.Helper()
	var lines strings.Builder
	buffer := make([]byte, 4096)
	for {
		if err := m.log.SetReadDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		n, err := m.log.Read(buffer)
		if err != nil {
			return lines.String()
		}
		lines.Write(buffer[:n])
	}
}

// TestSharedMachine: every way to pass a limit of the policy is refused, with the policy's
// line, and what is within the limits starts.
func TestSharedMachine(t *testing.T) {
	m := newSharedMachine(t)
	closed, open := m.base+"/payroll/file", m.base+"/open/file"
	m.profile(t, "home/.config/stockade/profiles/mine.yaml", "version: 1\nmatch: {commands: [cat]}\nfilesystem: {read: ["+m.base+"/open]}\n")
	m.profile(t, "home/.config/stockade/profiles/wide.yaml", "version: 1\nfilesystem: {read: ["+m.base+"/payroll]}\n")
	m.profile(t, "home/.config/stockade/profiles/child.yaml", "version: 1\nextends: [wide]\n")
	m.profile(t, "home/.config/stockade/profiles/keys.yaml", "version: 1\nfilesystem: {write: [{path: \"${home}/.ssh\", broad: true, reason: r}]}\n")
	m.profile(t, "home/.config/stockade/profiles/links.yaml", "version: 1\nfilesystem: {read: ["+m.home+"/link]}\n")
	m.profile(t, "repo/.stockade/profiles/asked.yaml", "version: 1\nfilesystem: {read: ["+m.base+"/payroll]}\n")
	m.profile(t, "other/stockade/profiles/mine.yaml", "version: 1\nmatch: {commands: [cat]}\nfilesystem: {read: ["+m.base+"/payroll]}\n")
	m.profile(t, "other/stockade/policy.yaml", "version: 1\n")
	m.profile(t, "wide-policy.yaml", "version: 1\nlimits: {filesystem: {never: [/nowhere]}, network: {egress: all}}\n")
	m.profile(t, "home/.ssh/id", "a key\n")
	if err := os.Symlink(m.base+"/payroll", filepath.Join(m.home, "link")); err != nil {
		t.Fatal(err)
	}

	// Within the limits. A link in a root leads nowhere.
	if out, errs, status := m.stockade(t, nil, "run", "--", "cat", open); status != 0 || out != "open\n" {
		t.Fatalf("status %d, %q, %s", status, out, errs)
	}
	if log := m.logged(t); !strings.Contains(log, "start uid=") || !strings.Contains(log, `profile=\"mine\"`) && !strings.Contains(log, `profile="mine"`) {
		t.Errorf("the log has %q", log)
	}
	if out, errs, status := m.stockade(t, nil, "run", "--", "cat", m.base+"/open/link"); status != 1 || out != "" || !strings.Contains(errs, "Permission denied") {
		t.Errorf("a link in a root: status %d, %q, %s", status, out, errs)
	}

	line := policyLines(t)
	for name, test := range map[string]struct {
		env   []string
		words []string
		line  int
	}{
		"flag":               {words: []string{"run", "--profile", "mine", "--read", closed, "--", "cat", closed}, line: line["never:"]},
		"flag above":         {words: []string{"run", "--profile", "mine", "--write", m.base, "--", "cat", closed}, line: line["never:"]},
		"root":               {words: []string{"run", "--profile", "filesystem", "--root", m.base + "/payroll", "--", "true"}, line: line["never:"]},
		"profile":            {words: []string{"run", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"extends":            {words: []string{"run", "--profile", "child", "--", "cat", closed}, line: line["never:"]},
		"link":               {words: []string{"run", "--profile", "links", "--", "cat", closed}, line: line["never:"]},
		"broad":              {words: []string{"run", "--profile", "keys", "--", "cat", closed}, line: line["broad:"]},
		"home":               {words: []string{"run", "--profile", "mine", "--read", m.home + "/.ssh", "--", "cat", open}, line: line["never:"]},
		"variable":           {env: []string{"AWS_SECRET=x"}, words: []string{"run", "--profile", "mine", "--env", "AWS_SECRET", "--", "cat", open}, line: line["never: [\"AWS_*\""]},
		"program":            {words: []string{"run", "--profile", "mine", "--exec", "su", "--", "cat", open}, line: line["never-execute:"]},
		"server":             {words: []string{"run", "--profile", "mine", "--", "su"}, line: line["never-execute:"]},
		"egress":             {words: []string{"run", "--profile", "mine", "--egress", "all", "--", "cat", open}, line: line["egress:"]},
		"egress inside":      {words: []string{"run", "--profile", "mine", "--egress", "10.1.2.3:443", "--", "cat", open}, line: line["egress:"]},
		"unknown":            {words: []string{"run", "--", "head", open}, line: line["unknown:"]},
		"user folder":        {env: []string{"XDG_CONFIG_HOME=" + m.base + "/other"}, words: []string{"run", "--", "cat", closed}, line: line["never:"]},
		"another system":     {env: []string{"TEST_SYSTEM=" + m.base + "/other", "XDG_CONFIG_DIRS=" + m.base + "/other", "STOCKADE_POLICY=" + m.base + "/other/stockade/policy.yaml"}, words: []string{"run", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"another policy":     {words: []string{"run", "--policy", m.base + "/wide-policy.yaml", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"state folder":       {env: []string{"XDG_STATE_HOME=" + m.base + "/other", "XDG_DATA_HOME=" + m.base + "/other", "XDG_CACHE_HOME=" + m.base + "/other"}, words: []string{"run", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"explain":            {words: []string{"explain", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"verify":             {words: []string{"verify", "--profile", "wide", "--", "cat", closed}, line: line["never:"]},
		"private folders":    {env: []string{"XDG_DATA_HOME=" + m.base + "/payroll"}, words: []string{"run", "--profile", "mine", "--", "cat", open}, line: line["never:"]},
		"private temporary":  {env: []string{"XDG_CACHE_HOME=" + m.base + "/payroll"}, words: []string{"run", "--profile", "mine", "--", "cat", open}, line: line["never:"]},
		"HOME for the limit": {env: []string{"HOME=" + m.base + "/open"}, words: []string{"run", "--profile", m.base + "/home/.config/stockade/profiles/wide.yaml", "--", "cat", closed}, line: line["never:"]},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, status := m.stockade(t, test.env, test.words...)
			if status != 125 || strings.Contains(out+errs, "payroll\n") || !strings.Contains(errs, "/etc/stockade/policy.yaml:"+strconv.Itoa(test.line)+":") {
				t.Errorf("status %d, %q, want 125 and line %d of the policy:\n%s", status, out, test.line, errs)
			}
		})
	}

	// A person's approval passes no limit.
	if _, errs, status := m.stockade(t, nil, "allow", "--yes", ".stockade/profiles/asked.yaml"); status != 0 {
		t.Fatalf("allow: status %d, %s", status, errs)
	}
	if out, errs, status := m.stockade(t, nil, "run", "--profile", "asked", "--", "cat", closed); status != 125 || out != "" || !strings.Contains(errs, "/etc/stockade/policy.yaml:"+strconv.Itoa(line["never:"])+":") {
		t.Errorf("an approval: status %d, %q, %s", status, out, errs)
	}

	// Without its log nothing starts.
	if err := m.log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, errs, status := m.stockade(t, nil, "run", "--", "cat", open); status != 125 || !strings.Contains(errs, "wants each start told") {
		t.Errorf("without a log: status %d, %s", status, errs)
	}
}

// TestPolicyOfAnotherUser: what an ordinary user could have written is no policy.
func TestPolicyOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		// The user is the root of its namespace, and owns what it makes: the mode alone is left.
		m := newSharedMachine(t)
		if err := os.Chmod(filepath.Join(m.base, "etc", "stockade", "policy.yaml"), 0o666); err != nil { //nolint:gosec // what is to be refused
			t.Fatal(err)
		}
		if _, errs, status := m.stockade(t, nil, "run", "--", "cat"); status != 125 || !strings.Contains(errs, "others may write") {
			t.Errorf("status %d, %s", status, errs)
		}
		return
	}
	m := newSharedMachine(t)
	file := filepath.Join(m.base, "etc", "stockade", "policy.yaml")
	for name, spoil := range map[string]func() error{
		"owner":        func() error { return os.Chown(file, 65534, 65534) },
		"folder owner": func() error { return errors.Join(os.Chown(file, 0, 0), os.Chown(filepath.Dir(file), 65534, 65534)) },
		"unreadable":   func() error { return errors.Join(os.Chown(filepath.Dir(file), 0, 0), os.Chmod(file, 0o600)) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, errs, status := m.stockade(t, nil, "run", "--", "cat"); status != 125 || !strings.Contains(errs, "policy") {
			t.Errorf("%s: status %d, %s", name, status, errs)
		}
		if err := errors.Join(os.Chown(file, 0, 0), os.Chown(filepath.Dir(file), 0, 0), os.Chmod(file, 0o644)); err != nil { //nolint:gosec // as it was
			t.Fatal(err)
		}
	}
}

// policyLines finds the lines of the example's policy by what they begin with.
func policyLines(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("shared-machine/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	lines := map[string]int{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		for _, begin := range []string{"never:", "never: [\"AWS_*\"", "broad:", "never-execute:", "egress:", "unknown:"} {
			if _, known := lines[begin]; !known && strings.HasPrefix(line, begin) {
				lines[begin] = i + 1
			}
		}
	}
	return lines
}
