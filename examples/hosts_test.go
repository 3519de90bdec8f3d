package examples_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"stockade/examples/stock"
)

// host is a host application: its configuration, with SERVER for the command line of one
// server in its own spelling, and how it is made to start its servers.
type host struct {
	name    string
	file    string            // below HOME, or below PROJECT
	text    string            // COMMAND, and ARGS as a list in JSON, which TOML shares
	other   map[string]string // further files
	command []string
	says    string // "" when it never ends by itself, for want of a model
}

func hosts(t *testing.T) []host {
	t.Helper()
	folder, err := stock.Folder()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(folder, "hosts", "node_modules")
	processor := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	const table = `{"mcpServers": {"looking": {"command": COMMAND, "args": ARGS}}}` + "\n"
	return []host{
		{
			name: "Claude Code, project", file: "PROJECT/.mcp.json", text: table,
			other:   map[string]string{"HOME/.claude/settings.json": `{"enableAllProjectMcpServers":true}`},
			command: []string{filepath.Join(modules, "@anthropic-ai", "claude-code-linux-"+processor, "claude"), "mcp", "list"},
			says:    "✔ Connected",
		},
		{
			name: "Claude Code, user", file: "HOME/.claude.json", text: table,
			command: []string{filepath.Join(modules, "@anthropic-ai", "claude-code-linux-"+processor, "claude"), "mcp", "list"},
			says:    "✔ Connected",
		},
		{
			name: "Gemini CLI", file: "HOME/.gemini/settings.json",
			text: `{"security": {"folderTrust": {"enabled": false}}, "privacy": {"usageStatisticsEnabled": false}, // comment
  "mcpServers": {"looking": {"command": COMMAND, "args": ARGS}}}` + "\n",
			command: []string{filepath.Join(modules, ".bin", "gemini"), "mcp", "list"},
			says:    "Connected",
		},
		{
			name: "Codex CLI", file: "HOME/.codex/config.toml",
			// A model that is not there, so that nothing is asked of anybody.
			text: `model_provider = "none"
model = "none"

[model_providers.none]
name = "none"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"

[mcp_servers.looking] # the one
command = COMMAND
args = ARGS
`,
			command: []string{filepath.Join(modules, ".bin", "codex"), "exec", "--skip-git-repo-check", "hi"},
		},
	}
}

// TestHosts: real host applications (beside the inspector of [TestInspector], which in its
// --config mode takes the "--" of any server's arguments for its own) start a server out of their own configuration, wrapped by
// one command, and reach it in its jail; unwrapped they have their bytes back, and reach it
// outside.
func TestHosts(t *testing.T) {
	for _, h := range hosts(t) {
		t.Run(h.name, func(t *testing.T) {
			p := newPlace(t)
			place := strings.NewReplacer("HOME/", p.home+"/", "PROJECT/", p.project+"/")
			file := place.Replace(h.file)
			args := fmt.Sprintf("[%q, %q]", example(t, "testdata/looking.mjs"), "--look="+p.secret)
			text := strings.NewReplacer("COMMAND", `"node"`, "ARGS", args).Replace(h.text)
			for name, content := range h.other {
				writeBelow(t, place.Replace(name), content)
			}
			writeBelow(t, file, text)
			free, jailed := filepath.Join(p.home, "seen"), filepath.Join(p.home, ".local/share/stockade/homes/*/seen")

			p.reaches(t, &h, place, free, secretText)
			p.stockade(t, "wrap", "--yes", file)
			if now, err := os.ReadFile(file); err != nil || string(now) == text || !strings.Contains(string(now), "stockade") {
				t.Fatalf("wrapped: %s (%v)", now, err)
			}
			p.reaches(t, &h, place, jailed, "EACCES")
			p.stockade(t, "unwrap", "--yes", file)
			// Claude Code keeps its own state in the same file, and has written it meanwhile.
			if now, err := os.ReadFile(file); err != nil || strings.Contains(string(now), "stockade") || h.name != "Claude Code, user" && string(now) != text {
				t.Fatalf("unwrapped: %s (%v)", now, err)
			}
			p.reaches(t, &h, place, free, secretText)
		})
	}
}

func writeBelow(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, path, text)
}

// stockade runs the built command in the project.
func (p place) stockade(t *testing.T, words ...string) {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, words...)
	cmd.Dir, cmd.Env = p.project, []string{"HOME=" + p.home, "PATH=" + filepath.Dir(binary) + ":/usr/bin:/bin"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("stockade %q: %v: %s", words, err, out)
	}
}

// reaches runs a host in a network of its own, until it has listed or called the server's
// tool: what the server saw stands in a file.
func (p place) reaches(t *testing.T, h *host, place *strings.Replacer, seen, want string) {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	if found, _ := filepath.Glob(seen); len(found) > 0 {
		if err := os.Remove(found[0]); err != nil {
			t.Fatal(err)
		}
	}
	words := []string{"--net"}
	if os.Getuid() != 0 {
		words = append(words, "--map-root-user")
	}
	words = append(words, "sh", "-c", `ip link set lo up; exec "$@"`, "sh")
	for _, word := range h.command {
		words = append(words, place.Replace(word))
	}
	cmd := exec.Command("unshare", words...)
	cmd.Dir = p.project
	cmd.Env = []string{"HOME=" + p.home, "TMPDIR=" + p.tmp, "PATH=" + filepath.Dir(binary) + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin", "LANG=C.UTF-8", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	text, running := "", true
	for give := time.Now().Add(time.Minute); time.Now().Before(give); time.Sleep(20 * time.Millisecond) {
		if found, _ := filepath.Glob(seen); len(found) == 1 {
			content, err := os.ReadFile(found[0])
			if err != nil {
				t.Fatal(err)
			}
			text = string(content)
		}
		select {
		case <-ended:
			running = false
		default:
		}
		if !running || h.says == "" && strings.Contains(text, "tools/list") {
			break
		}
	}
	if running { // it would wait for its model
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			<-ended
		}
		if h.says != "" {
			t.Errorf("the host did not end:\n%s", &out)
		}
	}
	if !strings.Contains(text, "initialize "+want) || !strings.Contains(out.String(), h.says) {
		t.Fatalf("the server saw %q, want %q; the host said:\n%s", text, want, &out)
	}
	awaitEnd(t)
}
