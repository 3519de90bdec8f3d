package nettest

import (
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// RepositoryFile is a file in the repository of [Network.Repository], and RepositoryText
// what it holds.
const (
	RepositoryFile = "README"
	RepositoryText = "a repository of the test network\n"
)

// Repository makes the git repository that every web server shows at /repo.git/, and
// returns the commit of its branch main.
func (n *Network) Repository(t testing.TB) string {
	t.Helper()
	n.repository.Do(func() {
		if err := makeRepository(filepath.Join(n.folder, "work"), n.repositoryFolder()); err != nil {
			t.Fatal(err)
		}
	})
	commit, err := git(n.repositoryFolder(), "rev-parse", "main")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(commit)
}

func (n *Network) repositoryFolder() string { return filepath.Join(n.folder, "git", "repo.git") }

func makeRepository(work, bare string) error {
	if err := os.MkdirAll(work, 0o755); err != nil { //nolint:gosec // nothing of it is secret
		return fmt.Errorf("making a folder for the repository: %w", err)
	}
	if err := os.WriteFile(filepath.Join(work, RepositoryFile), []byte(RepositoryText), 0o644); err != nil { //nolint:gosec // nothing of it is secret
		return fmt.Errorf("writing a file of the repository: %w", err)
	}
	for _, words := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", RepositoryFile},
		{"-c", "user.name=nettest", "-c", "user.email=nettest@corp-demo.org", "commit", "-q", "-m", "first"},
		{"clone", "-q", "--bare", ".", bare},
	} {
		if _, err := git(work, words...); err != nil {
			return err
		}
	}
	return nil
}

// git runs git in a folder without the person's own settings.
func git(folder string, words ...string) (string, error) {
	cmd := exec.Command("git", words...)
	cmd.Dir = folder
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w: %s", words[0], err, out)
	}
	return string(out), nil
}

// repositoryHandler serves the repository by git's own program for that.
func (n *Network) repositoryHandler() http.Handler {
	folder, err := git("/", "--exec-path")
	if err != nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		})
	}
	return &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(folder), "git-http-backend"),
		Root: "/",
		Env: []string{
			"GIT_PROJECT_ROOT=" + filepath.Dir(n.repositoryFolder()), "GIT_HTTP_EXPORT_ALL=1",
			"HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1",
		},
		Logger: silent(),
		Stderr: os.Stderr,
	}
}

// remoteEnd is the client's end of a request's connection.
func remoteEnd(r *http.Request) netip.AddrPort {
	end, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.AddrPort{}
	}
	return end
}
