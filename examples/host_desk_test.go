package examples_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stockade/examples/stock"
)

// desk is a place with one host's configuration.
type desk struct {
	place
	host    *host
	file    string
	text    string
	paths   *strings.Replacer
	servers map[string]string // with the name of one tool of each
}

func newDesk(t *testing.T, h *host) *desk {
	t.Helper()
	p := newPlace(t)
	stocked, err := stock.Everything.Script()
	if err != nil {
		t.Fatal(err)
	}
	words := strings.NewReplacer(
		"NODE", `"node"`, "PYTHON", `"/usr/bin/python3"`,
		"LOOKING", fmt.Sprintf("%q, %q", example(t, "testdata/looking.py"), "--look="+p.secret),
		"STOCK", fmt.Sprintf(`%q, "stdio"`, stocked),
	)
	d := &desk{
		place: p, host: h, text: words.Replace(h.text), servers: map[string]string{"looking": "look"},
		paths: strings.NewReplacer("HOME/", p.home+"/", `PROJECT/"`, p.project+`"`, "PROJECT/", p.project+"/"),
	}
	if strings.Contains(h.text, "STOCK") {
		d.servers["stock"] = "echo"
	}
	d.file = d.paths.Replace(h.file)
	for name, content := range h.other {
		writeBelow(t, d.paths.Replace(name), d.paths.Replace(content))
	}
	writeBelow(t, d.file, d.text)
	return d
}

func writeBelow(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, text)
}

// hostCommand is a command with a host's environment: a project's file names stockade alone.
func (d *desk) hostCommand(t *testing.T, words ...string) *exec.Cmd {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := d.command(words...)
	cmd.Env = append([]string{
		"HOME=" + d.home, "TMPDIR=" + d.tmp, "PATH=" + filepath.Dir(binary) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin",
		"LANG=C.UTF-8", "DO_NOT_TRACK=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1", "CONTINUE_TELEMETRY_ENABLED=0",
	}, d.host.env...)
	return cmd
}

// stockade runs the built command in the project.
func (d *desk) stockade(t *testing.T, words ...string) {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := d.hostCommand(t, append([]string{binary}, words...)...).CombinedOutput(); err != nil {
		t.Fatalf("stockade %q: %v: %s", words, err, out)
	}
}

// standing is where a server runs.
type standing bool

const (
	asWritten standing = false
	asWrapped standing = true
)

// seen is where the server looking notes what it sees.
func (d *desk) seen(s standing) string {
	if s == asWrapped {
		return filepath.Join(d.home, ".local/share/stockade/homes/*/seen")
	}
	return filepath.Join(d.home, "seen")
}

// reaches runs the host in a network of its own, to its end: it says that it reached its
// servers, and the one that looks saw what it should, each time it was asked.
func (d *desk) reaches(t *testing.T, want standing) {
	t.Helper()
	for _, s := range []standing{asWritten, asWrapped} {
		for _, old := range found(t, d.seen(s)) {
			if err := os.Remove(old); err != nil {
				t.Fatal(err)
			}
		}
	}
	said := d.run(t)
	for server, tool := range d.servers {
		if pattern := strings.NewReplacer("SERVER", server, "TOOL", tool).Replace(d.host.says); !regexp.MustCompile(pattern).MatchString(said) {
			t.Errorf("the host did not reach %s (%s):\n%s", server, pattern, said)
		}
	}
	if others := found(t, d.seen(!want)); len(others) > 0 {
		t.Errorf("the server wrote %q", others)
	}
	notes := found(t, d.seen(want))
	if len(notes) != 1 {
		t.Fatalf("the server left notes in %q, want one file; the host said:\n%s", notes, said)
	}
	text, err := os.ReadFile(notes[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(text, []byte(`"method": "initialize"`)) {
		t.Errorf("the server was not initialized: %s", text)
	}
	for line := range bytes.Lines(text) {
		d.judge(t, line, want)
	}
}

func found(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// judge compares what the server saw with what this process, which has no jail, sees: it may be
// in a container, which has a filter too.
func (d *desk) judge(t *testing.T, text []byte, want standing) {
	t.Helper()
	var saw struct {
		Method     string `json:"method"`
		Look       string `json:"look"`
		Privileges int    `json:"privileges"`
		Filter     int    `json:"filter"`
	}
	if err := json.Unmarshal(text, &saw); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	look, privileges, filter := "EACCES", 1, unix.SECCOMP_MODE_FILTER
	if want == asWritten {
		look, privileges, filter = secretText, asked(t, unix.PR_GET_NO_NEW_PRIVS), asked(t, unix.PR_GET_SECCOMP)
	}
	if saw.Look != look || saw.Privileges != privileges || saw.Filter != filter {
		t.Errorf("the server saw %s, want %q, %d and %d", text, look, privileges, filter)
	}
}

func asked(t *testing.T, option int) int {
	t.Helper()
	value, err := unix.PrctlRetInt(option, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// run starts the host beside a model that answers nothing, and returns what it printed and what
// it told the model.
func (d *desk) run(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	notes := filepath.Join(d.base, "model")
	words := []string{"--net"}
	if os.Getuid() != 0 {
		words = append(words, "--map-root-user")
	}
	words = append(words, "sh", "-c", `ip link set lo up; exec "$@"`, "sh", "node", example(t, "testdata/model.mjs"), notes)
	for _, word := range d.host.command {
		switch word {
		case "ENTRY":
			words = append(words, hostConfig(t, d.file)["looking"].Command)
		case "ARGUMENTS":
			words = append(words, hostConfig(t, d.file)["looking"].Args...)
		default:
			words = append(words, d.paths.Replace(word))
		}
	}
	like := d.hostCommand(t, "unshare")
	cmd := exec.CommandContext(ctx, "unshare", words...)
	cmd.Dir, cmd.Env = like.Dir, like.Env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	// Its own status says nothing: for want of a model some end with an error.
	if err := cmd.Run(); ctx.Err() != nil || errors.Is(err, exec.ErrWaitDelay) || cmd.ProcessState == nil {
		t.Errorf("the host did not end (%v):\n%s", err, &out)
	}
	awaitEnd(t)
	told, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(notes); err != nil {
		t.Fatal(err)
	}
	return out.String() + string(told)
}
