package nettest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"stockade/nettest"
)

// built is a program of ours that is compiled once for all tests, unless a variable names
// one that is there already.
type built struct {
	variable string
	name     string
	words    []string // the compiler's command line; OUT is where the program is to be
	env      []string

	once sync.Once
	path string
	err  error
}

var (
	// The flags of stockade are those of the released binary, as in the Makefile.
	launcherProgram = &built{
		variable: "STOCKADE_BIN", name: "stockade",
		words: []string{
			"go", "build", "-trimpath", "-tags", "landlocktsync,netgo,osusergo,urfave_cli_no_docs",
			"-ldflags", "-s -w -linkmode external -extldflags -static", "-o", "OUT", "../cmd/stockade",
		},
	}
	staticGo = &built{
		variable: "STOCKADE_NETTEST_GO", name: "client-go",
		words: []string{"go", "build", "-trimpath", "-o", "OUT", "./testdata/client"},
		env:   []string{"CGO_ENABLED=0"},
	}
	staticMusl = &built{
		variable: "STOCKADE_NETTEST_MUSL", name: "client-musl",
		words: []string{"musl-gcc", "-static", "-O1", "-Wall", "-Wextra", "-Werror", "-o", "OUT", "testdata/client.c"},
	}
)

// find returns the program's path. What is built lies in the network's folder and goes with it.
func (b *built) find(t testing.TB, n *nettest.Network) string {
	t.Helper()
	b.once.Do(func() {
		if named := os.Getenv(b.variable); named != "" {
			if b.path, b.err = filepath.Abs(named); b.err == nil {
				_, b.err = os.Stat(b.path)
			}
			return
		}
		b.path = filepath.Join(n.Folder(), b.name)
		cmd := exec.Command(b.words[0])
		for _, word := range b.words[1:] {
			cmd.Args = append(cmd.Args, strings.ReplaceAll(word, "OUT", b.path))
		}
		cmd.Env = append(os.Environ(), b.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			b.err = fmt.Errorf("building %s: %w\n%s", b.name, err, out)
		}
	})
	if b.err != nil {
		t.Fatal(b.err)
	}
	return b.path
}
