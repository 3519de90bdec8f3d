package program_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/sandbox/program"
)

func TestScriptChains(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/interp")
	w.program("usr/bin/env")
	w.link("ROOT/usr/bin/interp", "venv/bin/interp")
	w.script("s/plain", "#!ROOT/usr/bin/interp\nbody\n")
	w.script("s/argument", "#! \tROOT/usr/bin/interp  -a  b c \t\nbody\n")
	w.script("s/noend", "#!ROOT/usr/bin/interp")
	w.script("s/linked", "#!ROOT/venv/bin/interp\n")
	w.script("s/nested", "#!ROOT/s/argument -n\n")
	w.script("s/relative", "#!bin/tool\n")
	w.program("home/me/code/bin/tool")
	w.script("s/env", "#!ROOT/usr/bin/env interp\n")
	w.script("s/envsplit", "#!ROOT/usr/bin/env -S interp --one 'two three' \\#x\n")
	w.script("s/envdash", "#!ROOT/usr/bin/env -S -- interp -x\n")
	w.script("s/envscript", "#!ROOT/usr/bin/env wrapper\n")
	w.script("usr/bin/wrapper", "#!ROOT/usr/bin/interp -w\n")
	w.script("s/ñ ü\n", "#!ROOT/usr/bin/interp\n")
	w.link("plain", "s/link")

	const interp = "ROOT/usr/bin/interp"
	tests := []struct {
		name, start string
		argv        []string
		file        string
		notes       string
	}{
		{"plain", "s/plain", []string{interp, "ROOT/s/plain"}, interp, ""},
		{"one argument, blanks kept", "s/argument", []string{interp, "-a  b c", "ROOT/s/argument"}, interp, ""},
		{"no line end", "s/noend", []string{interp, "ROOT/s/noend"}, interp, ""},
		{"interpreter behind a link keeps its name", "s/linked", []string{"ROOT/venv/bin/interp", "ROOT/s/linked"}, interp, ""},
		{"script behind a link keeps its name", "s/link", []string{interp, "ROOT/s/link"}, interp, ""},
		{"interpreter is a script", "s/nested", []string{interp, "-a  b c", "ROOT/s/argument", "-n", "ROOT/s/nested"}, interp, ""},
		{
			"relative interpreter", "s/relative",
			[]string{"ROOT/home/me/code/bin/tool", "ROOT/s/relative"},
			"ROOT/home/me/code/bin/tool",
			`the interpreter of "ROOT/s/relative" is relative to the working folder: "ROOT/home/me/code/bin/tool"`,
		},
		{"env", "s/env", []string{interp, "ROOT/s/env"}, interp, ""},
		{"env -S", "s/envsplit", []string{interp, "--one", "two three", "#x", "ROOT/s/envsplit"}, interp, ""},
		{"env -S --", "s/envdash", []string{interp, "-x", "ROOT/s/envdash"}, interp, ""},
		{"env of a script", "s/envscript", []string{interp, "-w", "ROOT/usr/bin/wrapper", "ROOT/s/envscript"}, interp, ""},
		{"odd name", "s/ñ ü\n", []string{interp, "ROOT/s/ñ ü\n"}, interp, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := w.resolve(w.at(tt.start), "-z", "y x")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append(tt.argv, "-z", "y x"), w.rel(p.Argv...)); diff != "" {
				t.Errorf("argv (-want +got):\n%s", diff)
			}
			if got := w.rel(p.File)[0]; got != tt.file {
				t.Errorf("file %q, want %q", got, tt.file)
			}
			if w.rel(p.Named)[0] != "ROOT/"+tt.start {
				t.Errorf("named %q", p.Named)
			}
			if got := w.notes(p); got != tt.notes {
				t.Errorf("notes %q, want %q", got, tt.notes)
			}
			if diff := cmp.Diff([]string{tt.file, "ROOT/lib/ld.so"}, w.rel(p.Execute...)); diff != "" {
				t.Errorf("execute (-want +got):\n%s", diff)
			}
			real, err := filepath.EvalSymlinks(w.at(tt.start))
			if err != nil {
				t.Fatal(err)
			}
			if reads := strings.Join(w.reads(p.Read), "|"); !strings.Contains(reads, strings.TrimPrefix(real, w.root+"/")) {
				t.Errorf("the script is not readable: %s", reads)
			}
		})
	}
}

func TestScriptsThatCannotStart(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/env")
	w.program("usr/bin/interp")
	w.folder("s/folder")
	if err := unix.Mkfifo(w.at("s/fifo"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.at("s/fifo"), 0o777); err != nil {
		t.Fatal(err)
	}
	w.script("s/nothing", "#!\n")
	w.script("s/blank", "#!  \t \n")
	w.script("s/long", "#!ROOT/"+strings.Repeat("x", 300)+"\n")
	w.script("s/gone", "#!ROOT/usr/bin/gone\n")
	w.script("s/intofolder", "#!ROOT/s/folder\n")
	w.script("s/intofifo", "#!ROOT/s/fifo\n")
	w.script("s/intodevice", "#!/dev/zero\n")
	w.script("s/dos", "#!ROOT/usr/bin/interp\r\nbody\r\n")
	w.script("s/dosenv", "#!ROOT/usr/bin/env interp\r\n")
	w.script("s/self", "#!ROOT/s/self\n")
	w.script("s/env0", "#!ROOT/usr/bin/env\n")
	w.script("s/envgone", "#!ROOT/usr/bin/env gone\n")
	w.script("s/envtwo", "#!ROOT/usr/bin/env interp --flag\n")
	w.script("s/envset", "#!ROOT/usr/bin/env -S A=1 B=2 interp\n")
	w.script("s/envempty", "#!ROOT/usr/bin/env -i interp\n")
	w.script("s/envunset", "#!ROOT/usr/bin/env -S -u PATH interp\n")
	w.script("s/envvar", "#!ROOT/usr/bin/env -S interp ${HOME}\n")
	w.script("s/c5", "#!ROOT/usr/bin/interp\n")
	for i := 4; i > 0; i-- {
		w.script(fmt.Sprintf("s/c%d", i), fmt.Sprintf("#!ROOT/s/c%d\n", i+1))
	}

	tests := []struct {
		name, path, reason string
		cause              error
	}{
		{"names nothing", "s/nothing", "its first line cannot be used", errAny},
		{"blanks", "s/blank", "its first line cannot be used", errAny},
		{"too long", "s/long", "its first line cannot be used", errAny},
		{"interpreter gone", "s/gone", "its interpreter is missing", unix.ENOENT},
		{"interpreter is a folder", "ROOT/s/folder", "it is a folder", nil},
		{"interpreter is a fifo", "ROOT/s/fifo", "it is not a regular file", nil},
		{"interpreter is a device", "/dev/zero", "it is not a regular file", nil},
		{"carriage return", "s/dos", "its `#!` line ends in a carriage return", nil},
		{"carriage return behind env", "s/dosenv", "its `#!` line ends in a carriage return", nil},
		{"itself", "s/self", "more than 4 scripts lead to its interpreter", unix.ELOOP},
		{"too deep", "s/c1", "more than 4 scripts lead to its interpreter", unix.ELOOP},
		// env takes the script for its program, which starts env again.
		{"env without a program", "s/env0", "more than 4 scripts lead to its interpreter", unix.ELOOP},
		{"env finds nothing", "s/envgone", "env finds no program for it", errAny},
		{"env with two words", "s/envtwo", "env finds no program for it", errAny},
		{"env sets a variable", "s/envset", "env sets A, which is the profile's to set (environment: set)", nil},
		{"env -i", "s/envempty", `env option "-i interp" cannot be followed`, nil},
		{"env -u", "s/envunset", `env option "-u" cannot be followed`, nil},
		{"env with a variable", "s/envvar", "the text of env -S depends on a variable", nil},
	}
	starts := map[string]string{
		"interpreter is a folder": "s/intofolder", "interpreter is a fifo": "s/intofifo",
		"interpreter is a device": "s/intodevice",
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			start, path := starts[tt.name], tt.path
			if start == "" {
				start, path = tt.path, "ROOT/"+tt.path
			}
			_, err := w.resolve(w.at(start))
			if errors.Is(tt.cause, errAny) {
				if refused, ok := asRefused(err); ok && refused.Err != nil {
					tt.cause = refused.Err
				}
			}
			notExecutable(t, w, err, path, tt.reason, tt.cause)
		})
	}
	// The twin of the chain that is too deep.
	p := w.mustResolve("ROOT/s/c2")
	want := []string{"ROOT/usr/bin/interp", "ROOT/s/c5", "ROOT/s/c4", "ROOT/s/c3", "ROOT/s/c2"}
	if diff := cmp.Diff(want, w.rel(p.Argv...)); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
}

var errAny = errors.New("any")

func asRefused(err error) (*program.NotExecutableError, bool) {
	return errors.AsType[*program.NotExecutableError](err)
}

func TestEnvOnTheCommandLine(t *testing.T) {
	w := newWorld(t)
	w.program("usr/bin/interp")
	w.program("usr/bin/coreutils")
	w.link("coreutils", "usr/bin/env")
	w.program("opt/env") // a program of that name that is another

	p := w.mustResolve("env", "interp", "a=b", "-x")
	if diff := cmp.Diff([]string{"ROOT/usr/bin/interp", "a=b", "-x"}, w.rel(p.Argv...)); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	_, err := w.resolve("env", "TOKEN=secret-value", "interp")
	notExecutable(t, w, err, "ROOT/usr/bin/env", "env sets TOKEN, which is the profile's to set (environment: set)", nil)
	if strings.Contains(err.Error(), "secret-value") {
		t.Errorf("the error tells a value: %v", err)
	}
	w.link("env", "opt/link")
	p = w.mustResolve("ROOT/opt/link", "interp")
	if p.File != w.at("opt/env") {
		t.Errorf("a link named otherwise is followed like env: %q", p.File)
	}
}

// victimArgv is an interpreter that writes down its arguments, so that what the kernel and
// env(1) make of a file can be compared with what Resolve says of it.
func victimArgv(s *jailtest.Stage, _ []string) jailtest.Outcome {
	text, err := json.Marshal(os.Args)
	if err != nil {
		s.Failf("encoding: %v", err)
	}
	if err := os.WriteFile(os.Getenv("ARGV_FILE"), text, 0o600); err != nil {
		s.Failf("writing: %v", err)
	}
	s.Begin()
	return jailtest.Outcome{}
}

// started runs a file and returns the argument vector that its interpreter got; none when
// no interpreter was started.
func started(t *testing.T, w *world, path string, args ...string) ([]string, error) {
	t.Helper()
	out := w.at("argv")
	_ = os.Remove(out)
	cmd := exec.Command(path, args...)
	cmd.Dir = w.dir
	cmd.Env = append(jailtest.Environment("argv"), "ARGV_FILE="+out, "PATH="+w.env["PATH"])
	text, err := cmd.CombinedOutput()
	if err != nil {
		if _, ended := errors.AsType[*exec.ExitError](err); ended {
			return nil, fmt.Errorf("%w: %s", err, text)
		}
		return nil, err
	}
	data, err := os.ReadFile(out)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var argv []string
	if err := json.Unmarshal(data, &argv); err != nil {
		t.Fatal(err)
	}
	return argv, nil
}

// binaryIn puts this test binary into the world under a short path. Scripts name it, and
// the 255 bytes of their line must hold it.
func binaryIn(t *testing.T, w *world, path string) {
	t.Helper()
	w.folder(filepath.Dir(w.at(path)))
	data, err := os.ReadFile(jailtest.Binary(t))
	if err != nil {
		t.Fatal(err)
	}
	// A fork elsewhere must not hold the file open for writing when it is executed.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	w.write(path, string(data), 0o755)
}

func TestHashbangAsTheKernelReadsIt(t *testing.T) {
	w := newWorld(t)
	binaryIn(t, w, "i")
	pad := func(n int) string { return strings.Repeat("p", n) }
	free := 255 - len("#!"+w.root+"/i ") // bytes for an argument in a full line
	lines := map[string]string{
		"plain":                            "#!ROOT/i\n",
		"blank in front":                   "#! \t ROOT/i\n",
		"trailing blanks":                  "#!ROOT/i \t \n",
		"argument":                         "#!ROOT/i -a\n",
		"argument with blanks":             "#!ROOT/i  -a b\tc  \n",
		"no end":                           "#!ROOT/i",
		"no end, argument":                 "#!ROOT/i -a b",
		"no end, trailing blank":           "#!ROOT/i ",
		"no end, argument, trailing blank": "#!ROOT/i -a ",
		"NUL behind the name":              "#!ROOT/i\x00-a\n",
		"NUL in the argument":              "#!ROOT/i -a\x00b\n",
		"blank, NUL":                       "#!ROOT/i \x00\n",
		"only a NUL":                       "#!\x00\n",
		"nothing":                          "#!\n",
		"nothing, no end":                  "#!",
		"blanks":                           "#! \t\n",
		"blanks to the end":                "#!" + strings.Repeat(" ", 300),
		"second line":                      "#!\nROOT/i\n",
		"full line":                        "#!ROOT/i " + pad(free-1) + "\n",
		"one too long":                     "#!ROOT/i " + pad(free) + "\n",
		"argument cut off":                 "#!ROOT/i " + pad(300) + "\n",
		"argument cut off, blank":          "#!ROOT/i " + pad(free-2) + " x\n",
		"name cut off":                     "#!ROOT/" + pad(300) + "\n",
		"name ends at the limit":           "#!ROOT/" + pad(255-len("#!"+w.root+"/")) + "\n",
		"vertical tab":                     "#!ROOT/i \v-a\n",
		"relative name":                    "#!../../../i -a\n",
		"name and slash":                   "#!ROOT/i/ -a\n",
	}
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			w.script("script", line)
			want, kernel := started(t, w, w.at("script"), "x y", "")
			p, err := w.resolve(w.at("script"), "x y", "")
			if (kernel == nil) != (err == nil) {
				t.Fatalf("the kernel: %v; Resolve: %v", kernel, err)
			}
			if kernel != nil {
				if _, ok := asRefused(err); !ok {
					t.Errorf("error %v is no NotExecutableError", err)
				}
				return
			}
			if name == "relative name" {
				want[0] = w.dir + "/" + want[0]
			}
			if diff := cmp.Diff(want, p.Argv); diff != "" {
				t.Errorf("argv (-kernel +resolve):\n%s", diff)
			}
		})
	}
}

func TestEnvSplitsAsCoreutils(t *testing.T) {
	jailtest.Need(t, jailtest.Probe{Name: "GNU env(1)", Check: func() error {
		text, err := exec.Command("env", "--version").Output()
		if err == nil && !strings.Contains(string(text), "GNU coreutils") {
			err = errors.New("another env")
		}
		return err
	}})
	w := newWorld(t)
	binaryIn(t, w, "usr/bin/interp")
	w.env["PATH"] += ":/usr/bin:/bin"
	texts := []string{
		"interp", " interp a", "interp a b  c", "interp\ta", `interp "a b" c`, `interp 'a b' c`,
		`interp a"b c"d`, `interp ""`, `interp '' x`, `interp a\_b`, `interp "a\_b"`, `interp a\\b`,
		`interp a\#b`, `interp #comment`, `interp a#b`, `interp a #b c`, `interp a\cb c`,
		`interp 'a\'b'`, `interp 'a\nb'`, `interp 'a\\b'`, `interp "a\nb"`, `interp a\tb`, `interp a\"b`,
		`interp '$X'`, `interp \$X`, `interp "\$X"`, `interp a\x`, `interp "a`, `interp 'a`, `interp a\`,
		`interp "a\cb"`, `interp 'a\x'`, `interp -a --b`, `-S"interp a" b`, `-S 'interp a' b`, `-- interp a`,
		`--split-string='interp a'`, "interp a\vb", "interp a\fb", `\_interp`, ``, ` `, `#`,
		`"interp" a`, `int"er"p a`, `'int'erp`, `interp "\"" '"'`, `interp \'`,
	}
	for _, text := range texts {
		t.Run(text, func(t *testing.T) {
			want, real := started(t, w, "env", "-S", text)
			p, err := w.resolve("env", "-S", text)
			// An env without a program prints its environment, which starts nothing.
			if (real == nil && len(want) > 0) != (err == nil) {
				t.Fatalf("env: %v %q; Resolve: %v", real, want, err)
			}
			if err != nil {
				if _, ok := asRefused(err); !ok {
					t.Errorf("error %v is no NotExecutableError", err)
				}
				return
			}
			if diff := cmp.Diff(want[1:], p.Argv[1:]); diff != "" {
				t.Errorf("arguments (-env +resolve):\n%s", diff)
			}
		})
	}
}
