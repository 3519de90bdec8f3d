package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// factError is a fact of this machine without which no plan can be made.
type factError struct {
	problem, hint string
	cause         error
}

func (e *factError) Error() string {
	if e.cause == nil {
		return e.problem
	}
	return e.problem + ": " + e.cause.Error()
}

func (e *factError) Unwrap() error { return e.cause }

// Hint is the cure, for a person.
func (e *factError) Hint() string { return e.hint }

// environment is the host's environment as a map. Of two entries with one name the first
// holds, as for getenv(3).
func environment(list []string) map[string]string {
	env := make(map[string]string, len(list))
	for _, e := range list {
		name, value, ok := strings.Cut(e, "=")
		if _, known := env[name]; ok && name != "" && !known {
			env[name] = value
		}
	}
	return env
}

// homeFolder is what HOME says. The user database is not asked: a host that starts servers
// sets HOME, and a second opinion could protect another folder than the one in use.
func homeFolder(env map[string]string) (string, error) {
	home := env["HOME"]
	const hint = "set HOME to your home folder in the host's configuration of this server"
	switch {
	case home == "":
		return "", &factError{problem: "HOME is not set, so your home folder cannot be protected", hint: hint}
	case !filepath.IsAbs(home):
		return "", &factError{problem: fmt.Sprintf("HOME is %q, which is not absolute", home), hint: hint}
	}
	home = filepath.Clean(home)
	st, err := os.Stat(home)
	if err != nil {
		return "", &factError{problem: fmt.Sprintf("looking for the home folder %q", home), hint: hint, cause: plainError(err)}
	}
	if !st.IsDir() {
		return "", &factError{problem: fmt.Sprintf("HOME is %q, which is not a folder", home), hint: hint}
	}
	return home, nil
}

// workingFolder asks the kernel, not PWD, which a host may set to anything. getcwd(2) puts
// "(unreachable)" before a folder outside the process's root.
func workingFolder() (string, error) {
	dir, err := unix.Getwd()
	const hint = "start it from a folder that exists"
	switch {
	case err != nil:
		return "", &factError{problem: "asking for the working folder", hint: hint, cause: err}
	case !strings.HasPrefix(dir, "/"):
		return "", &factError{problem: "the working folder cannot be reached from the root folder", hint: hint}
	}
	return dir, nil
}

// repository is the nearest folder at or above dir that has a .git (a folder, or the file
// of a worktree) of this user or root. It does not look above the home folder, and a .git
// that somebody else planted in a shared folder makes nothing a repository.
func repository(dir, home string, uid int) string {
	for at := dir; ; at = filepath.Dir(at) {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(at, ".git"), &st); err == nil {
			kind := st.Mode & unix.S_IFMT
			ours := int(st.Uid) == uid || st.Uid == 0
			if ours && (kind == unix.S_IFDIR || kind == unix.S_IFREG) {
				return at
			}
			return ""
		}
		if at == home || at == "/" {
			return ""
		}
	}
}

// xdgFolder is a base folder: the variable's value, or a folder below home when the
// variable is unset, empty or relative (XDG base directory specification: relative values
// are ignored).
func xdgFolder(env map[string]string, name, home, below string) string {
	if v := env[name]; filepath.IsAbs(v) {
		return filepath.Clean(v)
	}
	return filepath.Join(home, below)
}

// terminals are the device nodes behind the standard streams that are terminals: the
// server may open them again by name (/dev/tty, /dev/stdin).
func terminals() []string {
	var out []string
	for fd := range 3 {
		if _, err := unix.IoctlGetTermios(fd, unix.TCGETS); err != nil {
			continue
		}
		node, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil || !strings.HasPrefix(node, "/dev/") {
			continue
		}
		known := false
		for _, o := range out {
			known = known || o == node
		}
		if !known {
			out = append(out, node)
		}
	}
	return out
}

// plainError drops the operation and path that package os adds, which the message around
// it says already.
func plainError(err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		return pe.Err
	}
	return err
}
