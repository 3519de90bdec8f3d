package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Places of a Python install in the stage's home, which is thrown away.
const (
	pipTool   = "tool"   // an environment that has pip; the server's own has none
	pipWheels = "wheels" // what goes into the tree
	pipLog    = "pip.log"
	pipConf   = "pip.conf" // the person's configuration, as far as it is about the index
)

// runPip runs the pip of one environment in the interpreter of another, which it installs
// into: so the tree holds no package manager, and what pip needs is not taken for part of
// the tree. The last word, a folder, is replaced by the wheels in it, each as NAME===VERSION:
// a file's own path would be written into the tree.
const runPip = `import glob, os, sys
tool, wheels = sys.argv[1], sys.argv[-1]
pip = glob.glob(os.path.join(tool, "lib", "py*", "site-packages", "pip"))
names = sorted("===".join(os.path.basename(f).split("-")[:2]) for f in glob.glob(os.path.join(wheels, "*.whl")))
if len(pip) != 1 or not names:
    sys.exit("stockade: there is no pip, or nothing to install")
os.execv(sys.executable, [sys.executable, "-I", pip[0]] + sys.argv[2:-1] + names)
`

// fetchPip runs pip where nothing may be built. --only-binary does not hold for what a wheel
// requires by its address, and a build is code of the package, beside the person's credentials.
// So every way to start a program is closed in the interpreter, before a line of pip runs: the
// files of packages are data until then. What pip starts for its own ends (lsb_release, rustc)
// it does without when that is an OSError.
const fetchPip = `import runpy, sys
def closed(event, args):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.spawn", "os.exec", "os.fork", "os.forkpty", "os.system"):
        raise PermissionError("` + mustBuild + `")
sys.addaudithook(closed)
runpy.run_module("pip", run_name="__main__", alter_sys=True)
`

// mustBuild is in what pip says when it comes to a package that has to be built.
const mustBuild = "stockade: nothing is built"

// compileAll writes bytecode that depends on the sources alone: by their hash, where the
// default is their time, and with paths below the tree. Python takes it without a look at
// the source, which nobody can change, and puts the real path in when it is imported. Files
// that are no Python of this version, such as templates, are passed over.
const compileAll = `import compileall, py_compile, sys
compileall.compile_dir(sys.argv[1], maxlevels=50, ddir="venv/lib", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
`

// PipSteps are the commands that install a request into the stage's tree: venv, an
// environment without pip. The files of [PipConfig.Prepare] have to be in the stage before.
// python is the interpreter, absolute.
//
// Only wheels are taken, for which no code of a package runs. A package of r.Scripts is
// built instead, and then the whole step that fetches is without the person's credentials.
func PipSteps(r Request, s Stage, python string, c PipConfig) ([]Step, error) {
	if !filepath.IsAbs(python) {
		return nil, fmt.Errorf("installing with pip: the interpreter %q is no absolute path", python)
	}
	words, err := pipWords(r)
	if err != nil {
		return nil, err
	}
	tool, wheels := filepath.Join(s.Home, pipTool), filepath.Join(s.Home, pipWheels)
	tree := filepath.Join(s.Tree, "venv")
	env := []string{
		"PIP_CONFIG_FILE=" + filepath.Join(s.Home, pipConf), "NETRC=" + filepath.Join(s.Home, ".netrc"),
		"PIP_CACHE_DIR=" + filepath.Join(s.Home, "cache"), "PIP_NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1",
		"GIT_TERMINAL_PROMPT=0",
	}
	fetch := []string{filepath.Join(tool, "bin", "python"), "-I", "-c", fetchPip}
	if len(r.Scripts) > 0 {
		fetch = []string{filepath.Join(tool, "bin", "python"), "-I", "-m", "pip"}
	}
	fetch = append(fetch, "wheel",
		"--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-color",
		"--retries=1", "--timeout=10", "--wheel-dir="+wheels, "--only-binary=:all:",
		// pip says why it passed over a file, or could not reach an index, only in its log.
		"--log="+filepath.Join(s.Home, pipLog),
	)
	access := Online
	for _, name := range r.Scripts {
		fetch = append(fetch, "--no-binary="+name)
		access = Scripted
	}
	install := []string{
		filepath.Join(tree, "bin", "python"), "-I", "-c", runPip, tool, "install",
		"--no-input", "--disable-pip-version-check", "--progress-bar=off", "--no-color", "--no-warn-script-location",
		"--no-index", "--find-links=" + wheels, "--no-deps", "--ignore-installed", "--no-compile", "--only-binary=:all:", wheels,
	}
	offline := []string{"PIP_CONFIG_FILE=/dev/null", "PIP_NO_COLOR=1", "PYTHONDONTWRITEBYTECODE=1"}
	return []Step{
		// -I keeps variables and folders out that could put other modules in front.
		{Title: "making an environment for pip", Argv: []string{python, "-I", "-m", "venv", tool}, Env: offline, Access: Offline},
		{Title: "fetching", Argv: append(append(fetch, "--"), words...), Env: env, Access: access},
		// After what may run code of packages: see [ForgetTree].
		{Title: "making the environment", Argv: []string{python, "-I", "-m", "venv", "--without-pip", tree}, Env: offline, Access: Offline},
		{Title: "installing", Argv: install, Env: offline, Access: Offline},
		compileStep(s, python),
	}, nil
}

// compileStep is the step that writes the tree's bytecode. The interpreter is not the tree's:
// that runs lines of .pth files in it, which are the packages' (site(3)), at its start.
func compileStep(s Stage, python string) Step {
	return Step{
		Title: "compiling", Access: Offline,
		Argv: []string{python, "-I", "-S", "-c", compileAll, filepath.Join(s.Tree, "venv", "lib")},
	}
}

// Forget takes away what a step that fetched leaves and no later one may have: the person's
// configuration with its credentials.
func Forget(s Stage) error {
	for _, name := range [...]string{pipConf, ".netrc"} {
		if err := os.Remove(filepath.Join(s.Home, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing the credentials of the install: %w", err)
		}
	}
	return nil
}

// ForgetTree takes away a tree that a build has begun by itself.
func ForgetTree(s Stage) error {
	if err := os.RemoveAll(filepath.Join(s.Tree, "venv")); err != nil {
		return fmt.Errorf("removing what a build left in the tree: %w", err)
	}
	return nil
}

// PipNewest is the step that prints which versions of a package there are. It needs a stage
// in which [PipSteps] have begun: the environment for pip.
func PipNewest(name string, s Stage) Step {
	return Step{
		Title: "asking for the newest version",
		Argv: []string{
			filepath.Join(s.Home, pipTool, "bin", "python"), "-I", "-m", "pip", "index", "versions",
			"--no-input", "--disable-pip-version-check", "--no-color", "--retries=1", "--timeout=10", "--", name,
		},
		Env:    []string{"PIP_CONFIG_FILE=" + filepath.Join(s.Home, pipConf), "NETRC=" + filepath.Join(s.Home, ".netrc"), "PIP_NO_COLOR=1"},
		Access: Online,
	}
}

// ParsePipNewest reads what the step [PipNewest] printed: "name (1.2.3)"; "" when it is not
// to be told.
func ParsePipNewest(output []byte) string {
	for line := range strings.Lines(string(output)) {
		name, rest, found := strings.Cut(strings.TrimSpace(line), " (")
		if version, ended := strings.CutSuffix(rest, ")"); found && ended && name != "" && !strings.ContainsAny(name+version, " :") {
			return version
		}
	}
	return ""
}

// pipWords are a request's packages as pip reads them (PEP 508).
func pipWords(r Request) ([]string, error) {
	if r.Kind != PyPI || len(r.Specs) == 0 {
		return nil, errors.New("installing with pip: the request names no Python package")
	}
	words := make([]string, 0, len(r.Specs))
	for _, spec := range r.Specs {
		name := spec.Name
		if len(spec.Extras) > 0 {
			name += "[" + strings.Join(spec.Extras, ",") + "]"
		}
		if spec.Source == Registry {
			if spec.Name == "" {
				return nil, errors.New("installing with pip: a package has no name")
			}
			words = append(words, name+spec.Version)
			continue
		}
		if err := mayBuild(spec, r.Scripts); err != nil {
			return nil, err
		}
		place := spec.Place
		if filepath.IsAbs(place) {
			place = fileURL(place)
		} else if !strings.HasPrefix(place, "https://") && !strings.HasPrefix(place, "git+https://") {
			return nil, fmt.Errorf("installing with pip: a package of %q comes neither over HTTPS nor from an absolute path", r.Specs[0].Name)
		}
		switch {
		case spec.Name != "":
			words = append(words, name+" @ "+place)
		case len(spec.Extras) > 0:
			return nil, &InstallError{
				Problem: "extras of a package without a name",
				Cure:    `write "NAME[EXTRA] @ ADDRESS"`,
			}
		default:
			words = append(words, place)
		}
	}
	return words, nil
}

// mayBuild refuses a source that has to be built, unless the profile names it: a build is
// code of the package. For one without a name, what its address ends with counts, and the
// real name is compared later.
func mayBuild(spec Spec, scripts []string) error {
	if spec.Source == Archive && strings.HasSuffix(strings.ToLower(spec.Place), ".whl") {
		return nil
	}
	name := cmp.Or(spec.Name, nameOfPlace(spec.Place))
	if slices.ContainsFunc(scripts, func(s string) bool { return normalName(s) == normalName(name) }) {
		return nil
	}
	return &InstallError{
		Problem: fmt.Sprintf("%q has to be built, which runs code of the package during the install", name),
		Cure:    fmt.Sprintf("use a wheel, or allow it in a profile: install: {scripts: [%s]}", name),
	}
}

// nameOfPlace guesses a package's name from its address: the last part without version,
// branch and file type.
func nameOfPlace(place string) string {
	place, _, _ = strings.Cut(place, "#")
	place = strings.TrimRight(place, "/")
	name := place[strings.LastIndex(place, "/")+1:]
	name, _, _ = strings.Cut(name, "@")
	for _, end := range []string{".git", ".tar.gz", ".tgz", ".zip", ".tar.bz2"} {
		name = strings.TrimSuffix(name, end)
	}
	if i := strings.LastIndex(name, "-"); i > 0 && i+1 < len(name) && name[i+1] >= '0' && name[i+1] <= '9' {
		name = name[:i]
	}
	return name
}

// normalName returns a name as the index has it (PEP 503).
func normalName(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return strings.Join(words, "-")
}
