package program

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// maxScripts is how many `#!` lines may lead to a program. Linux follows five and
	// answers ELOOP at the sixth (tried on 6.18); no script on a real machine needs three.
	maxScripts = 4
	// maxSteps bounds scripts, shims and env together.
	maxSteps = 16
	// scriptHead is how much of a script is looked at to recognise a shim.
	scriptHead = 16 << 10
)

// Resolve works out what a command line starts, without running anything.
//
// argv is the command and its arguments, as a host would give them to execvp(3). The
// error is a *[NotFoundError], a *[NotExecutableError], or speaks of a malformed argv or
// Facts.
func Resolve(argv []string, f Facts) (Program, error) {
	s, err := newSearch(f)
	if err != nil {
		return Program{}, err
	}
	if err := checkArgv(argv); err != nil {
		return Program{}, err
	}
	named, err := s.find(argv[0])
	if err != nil {
		return Program{}, err
	}
	s.program.Named = named
	end, err := s.chase(command{named: named, args: argv[1:]})
	if err != nil {
		return Program{}, err
	}
	if err := s.start(end); err != nil {
		return Program{}, err
	}
	return s.program, nil
}

func checkArgv(argv []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return &NotFoundError{Err: errors.New("the command is empty")}
	}
	if strings.Contains(argv[0], "\x00") {
		return &NotFoundError{Name: argv[0], Err: errors.New("the name holds a NUL byte")}
	}
	for i, arg := range argv[1:] {
		if strings.Contains(arg, "\x00") {
			return fmt.Errorf("reading argument %d: it holds a NUL byte", i+1)
		}
	}
	return nil
}

// search is the state of one look: what was found out, and the answer as it grows.
type search struct {
	tree
	facts   Facts
	home    string   // facts.Home without links; "" when it names no folder
	folders []string // of PATH, absolute; what shims prepend included
	// persons are the folders of PATH that the host gave, and those that shims in them
	// lead to. A server's file that looks like a shim adds none.
	persons []string
	// shimFolders are folders of version managers that were left already: "system"
	// means the next program on PATH outside of them.
	shimFolders []string
	leftFor     []string // real folders of the programs that shims led to
	program     Program
	granted     []string            // folders in program.Read
	read        map[string]struct{} // paths in program.Read
	// touched are the files that the kernel executes on the way, in order: scripts,
	// env(1), interpreters. Resolve does not need them, Closure does.
	touched []string
	// kernel says that the way is the kernel's to go, in the jail: nothing on it may be
	// left out.
	kernel bool
	script string // the last script on the way, for messages
	// origin is the real path of the first script or wrapper on the way; "" when the host's
	// words reach the program as they are. chosen are the scripts that bring their
	// package along: origin, and interpreters out of PATH.
	origin string
	chosen []string
	// given is how many arguments the host gave to origin; they end Argv.
	given int
	// libraries is the closure of the program that runs in the end; nil when static.
	libraries *libraries
	python    layout // of the interpreter; empty for other runtimes
	walked    int    // folder entries seen in search of compiled modules
}

func newSearch(f Facts) (*search, error) {
	if f.Dir == "" || f.Dir[0] != '/' {
		return nil, fmt.Errorf("reading the working folder: %q is not absolute", f.Dir)
	}
	s := &search{facts: f, read: make(map[string]struct{}, 32)}
	s.program.Read = make([]Need, 0, 32)
	if f.Home != "" {
		if home, err := s.real(f.Home); err == nil && home.folder() {
			s.home = home.path
		}
	}
	s.splitPath()
	return s, nil
}

// command is a step of the way: a file to start and the arguments after its name.
type command struct {
	named string // absolute, links not followed; it becomes argv[0]
	args  []string
}

// executable is the end of the way: an ELF file.
type executable struct {
	command
	entry entry
	image image
}

// chase follows shims, wrappers and `#!` lines until it meets an ELF file.
func (s *search) chase(c command) (executable, error) {
	scripts := 0
	head := make([]byte, scriptHead)
	for range maxSteps {
		found, err := s.startable(c.named)
		if err != nil {
			return executable{}, err
		}
		f, err := s.open(found)
		if err != nil {
			return executable{}, &NotExecutableError{Path: c.named, Reason: "it cannot be read", Err: err}
		}
		next, end, err := s.step(c, found, f, head, &scripts)
		f.close()
		if err != nil {
			return executable{}, err
		}
		if end != nil {
			return *end, nil
		}
		c = next
	}
	return executable{}, blocked(c.named, "", "it is reached through too many scripts and shims")
}

// step looks at one opened file: it is the end of the way, or it leads to the next.
func (s *search) step(c command, found entry, f file, head []byte, scripts *int) (command, *executable, error) {
	n, err := f.ReadAt(head[:elfHeadSize], 0)
	if err == nil && isHashbang(head[:n]) {
		var more int
		more, err = f.ReadAt(head[n:], int64(n))
		n += more
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return command{}, nil, &NotExecutableError{Path: c.named, Reason: "it cannot be read", Err: err}
	}
	beginning := head[:n]
	next, followed, err := s.followShim(c, found, beginning)
	if followed && err == nil && s.kernel {
		err = s.refuseShim(c, next)
	}
	if followed || err != nil {
		return next, nil, err
	}
	s.noteSetID(found)
	s.touched = append(s.touched, found.path)
	switch {
	case isELF(beginning):
		image, err := readELF(f, beginning)
		if err != nil {
			return command{}, nil, &NotExecutableError{Path: c.named, Reason: "it is a damaged ELF file", Err: err}
		}
		end := executable{command: c, entry: found, image: image}
		next, isEnv, err := s.followEnv(end)
		if isEnv || err != nil {
			return next, nil, err
		}
		return command{}, &end, nil
	case isHashbang(beginning):
		if *scripts++; *scripts > maxScripts {
			return command{}, nil, &NotExecutableError{
				Path:   s.program.Named,
				Reason: fmt.Sprintf("more than %d scripts lead to its interpreter", maxScripts),
				Err:    unix.ELOOP,
			}
		}
		next, err := s.interpreter(c, found, beginning)
		return next, nil, err
	}
	return command{}, nil, unknownFormat(c.named, beginning)
}

// startable resolves a file and checks all that execve(2) checks before it reads.
func (s *search) startable(named string) (entry, error) {
	found, err := s.real(named)
	switch {
	case missing(err):
		return entry{}, &NotFoundError{Name: named, Err: err}
	case err != nil:
		return entry{}, &NotExecutableError{Path: named, Reason: "it cannot be reached", Err: err}
	case found.folder():
		return entry{}, blocked(named, "", "it is a folder")
	case !found.regular():
		return entry{}, blocked(named, "", "it is not a regular file")
	}
	// access(2) knows access lists and file systems mounted noexec, which mode bits do not show.
	if err := unix.Access(found.path, unix.X_OK); err != nil {
		return entry{}, &NotExecutableError{
			Path: named, Reason: "it may not be executed", Err: err,
			Hint: "chmod +x, unless it lies on a file system mounted noexec",
		}
	}
	return found, nil
}

func unknownFormat(path string, head []byte) error {
	if slices.Contains(head, 0) {
		return blocked(path, "", "it is neither an ELF program nor a script")
	}
	if len(head) == 0 {
		return blocked(path, "", "it is empty")
	}
	return blocked(path, "give the interpreter as the command and the file as its argument",
		"it is a text without a `#!` line, which only a shell could guess at")
}

func (s *search) noteSetID(e entry) {
	if e.mode&(unix.S_ISUID|unix.S_ISGID) != 0 {
		s.note("%q is set-user-id or set-group-id; in the jail it runs as you (no_new_privs)", e.path)
	}
}

// interpreter is what the kernel starts for a script: the interpreter of its `#!` line,
// with that line's argument and the script's path before the script's own arguments.
func (s *search) interpreter(c command, found entry, head []byte) (command, error) {
	line, err := parseHashbang(head)
	if err != nil {
		return command{}, &NotExecutableError{Path: c.named, Reason: "its first line cannot be used", Err: err}
	}
	if strings.HasSuffix(line.interpreter, "\r") || len(line.arguments) > 0 && strings.HasSuffix(line.arguments[0], "\r") {
		return command{}, blocked(c.named, "save it with Unix line ends", "its `#!` line ends in a carriage return")
	}
	named := line.interpreter
	if named[0] != '/' {
		named = join(s.facts.Dir, named)
		s.note("the interpreter of %q is relative to the working folder: %q", c.named, named)
	}
	if _, err := s.startable(named); err != nil {
		return command{}, interpreterError(c.named, err)
	}
	if !s.follows(c, found) {
		return command{}, blocked(c.named, "name it as the command, before the script",
			"the `#!` line of %q names this script, which lies neither on PATH nor beside it", s.script)
	}
	s.through(c, found)
	s.script = c.named
	s.need(Need{Path: found.path, Why: "script " + baseOf(c.named)})
	args := make([]string, 0, len(line.arguments)+1+len(c.args))
	args = append(args, line.arguments...)
	args = append(args, c.named)
	return command{named: named, args: append(args, c.args...)}, nil
}

// interpreterError is an error about a script's interpreter. The script was found, so it
// is never a NotFoundError.
func interpreterError(script string, err error) error {
	if _, absent := errors.AsType[*NotFoundError](err); absent {
		return &NotExecutableError{Path: script, Reason: "its interpreter is missing", Err: err}
	}
	return fmt.Errorf("following the `#!` line of %q: %w", script, err)
}

// followEnv takes the place of env(1), so that the jail needs none. It is told by its
// name: GNU's own file, or one of the programs that are many.
func (s *search) followEnv(e executable) (command, bool, error) {
	if baseOf(e.named) != "env" {
		return command{}, false, nil
	}
	switch baseOf(e.entry.path) {
	case "env", "coreutils", "busybox", "toybox", "gnuenv":
	default:
		return command{}, false, nil
	}
	what := e.named
	if s.script != "" {
		what = s.script
	}
	wanted, reason := parseEnv(e.args)
	if reason != "" {
		return command{}, true, blocked(what, "name the real program and its arguments", "%s", reason)
	}
	named, err := s.find(wanted.name)
	if err != nil {
		hint := ""
		if strings.Contains(wanted.name, " ") {
			hint = "a `#!` line hands env one argument; env -S splits it"
		}
		return command{}, true, &NotExecutableError{
			Path: what, Reason: "env finds no program for it", Err: err, Hint: hint,
		}
	}
	if s.kernel {
		// env itself runs first, with libraries of its own.
		if err := s.link(e); err != nil {
			return command{}, true, err
		}
	}
	return command{named: named, args: wanted.args}, true, nil
}

// start fills in the answer for the ELF file at the end.
func (s *search) start(e executable) error {
	if err := s.link(e); err != nil {
		return err
	}
	p := &s.program
	p.File = e.entry.path
	p.Argv = append([]string{e.named}, e.args...)
	p.Args = e.args
	p.Path = appendNew(p.Path, s.folderOf(e.named))
	p.Path = appendNew(p.Path, parentOf(e.entry.path))
	// What a script was found beside comes last: a package's folder of programs must not
	// decide which node a server starts.
	for _, folder := range append(s.leftFor, s.folderOf(p.Named)) {
		if !s.inShims(folder) {
			p.Path = appendNew(p.Path, folder)
		}
	}
	if err := s.runtime(e); err != nil {
		return err
	}
	s.identify()
	return nil
}

// folderOf is the real folder of a path whose last name may be a link.
func (s *search) folderOf(named string) string {
	links := 0
	if real, err := s.folder(parentOf(named), &links); err == nil {
		return real
	}
	return parentOf(named)
}
