package stock

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// program is one of our own programs that tests start: named by a variable, or built from
// the checkout once per process.
type program struct {
	variable string   // names a built one
	pkg      string   // package to build otherwise
	args     []string // of go build
	env      []string

	once   sync.Once
	path   string
	folder string // to remove
	err    error
}

// The programs. The flags of stockade are those of the released binary, as in the Makefile.
var (
	launcher = &program{
		variable: "STOCKADE_BIN",
		pkg:      "./cmd/stockade",
		args: []string{
			"-tags", "landlocktsync,netgo,osusergo,urfave_cli_no_docs", "-trimpath",
			"-ldflags", "-s -w -linkmode external -extldflags -static",
		},
	}
	staticServer = &program{
		variable: "STOCKADE_STATIC_GO",
		pkg:      "./examples/static-go",
		args:     []string{"-trimpath"},
		env:      []string{"CGO_ENABLED=0"},
	}
)

// Binary returns the path of the stockade binary under test. Any user may execute it.
// [Clean] removes what was built.
func Binary() (string, error) { return launcher.find() }

// StaticServer returns the path of the server in examples/static-go, a static program.
func StaticServer() (string, error) { return staticServer.find() }

func (p *program) find() (string, error) {
	p.once.Do(func() {
		if named := os.Getenv(p.variable); named != "" {
			p.path, p.err = filepath.Abs(named)
			if p.err == nil {
				_, p.err = os.Stat(p.path)
			}
			if p.err != nil {
				p.err = fmt.Errorf("finding %s: %w", p.variable, p.err)
			}
			return
		}
		p.err = p.build()
	})
	return p.path, p.err
}

func (p *program) build() error {
	root, err := Checkout()
	if err != nil {
		return err
	}
	p.folder, err = os.MkdirTemp("", "stockade-bin-")
	if err != nil {
		return fmt.Errorf("making a folder for %s: %w", p.pkg, err)
	}
	// Servers run as other users in some tests; they must reach the program.
	if err := os.Chmod(p.folder, 0o755); err != nil {
		return fmt.Errorf("opening the folder of %s: %w", p.pkg, err)
	}
	p.path = filepath.Join(p.folder, filepath.Base(p.pkg))
	args := append([]string{"build", "-o", p.path}, p.args...)
	cmd := exec.Command("go", append(args, p.pkg)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), p.env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", p.pkg, err, out)
	}
	return nil
}

// Clean removes what was built. Nothing can be built afterwards.
func Clean() error {
	var errs []error
	for _, p := range []*program{launcher, staticServer} {
		if p.folder != "" {
			errs = append(errs, os.RemoveAll(p.folder))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing built programs: %w", err)
	}
	return nil
}
