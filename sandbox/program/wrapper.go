package program

import (
	"bytes"
	"strings"
)

// binWrapper follows the shell scripts that pnpm writes into .bin folders, where npm
// writes links. Their last lines say `exec node "$basedir/PATH" "$@"`; the rest looks for
// a node beside itself, with programs that the jail would not have.
func (s *search) binWrapper(c command, found entry, head []byte) (command, bool, error) {
	if found.size > int64(len(head)) {
		return command{}, false, nil
	}
	folder := parentOf(found.path)
	var runtime, script string
	for line := range bytes.Lines(head) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "exec ")
		if !ok {
			continue
		}
		program, after, _ := strings.Cut(rest, " ")
		after = strings.TrimSpace(after)
		target, ok := strings.CutSuffix(after, `" "$@"`)
		target, quoted := strings.CutPrefix(target, `"$basedir/`)
		if !ok || !quoted || strings.ContainsAny(target, "\"$`\\") {
			continue
		}
		program = strings.Trim(program, `"`)
		if local, ok := strings.CutPrefix(program, "$basedir/"); ok {
			// Taken only if it is there.
			if !s.runnable(join(folder, local)) {
				continue
			}
			program = join(folder, local)
		}
		if strings.ContainsAny(program, "$`\\") || program == "" {
			continue
		}
		runtime, script = program, join(folder, target)
		break
	}
	if runtime == "" {
		return command{}, false, nil
	}
	real, err := s.real(script)
	if err != nil || !real.regular() {
		return command{}, true, blocked(c.named, "install the package again", "it wraps %q, which is not there", script)
	}
	named, err := s.find(runtime)
	if err != nil {
		return command{}, true, interpreterError(c.named, err)
	}
	s.note("%q wraps %q", c.named, real.path)
	if s.wrappedHere(found, real) {
		s.through(c, real)
	} else {
		s.through(c, found)
	}
	args := append([]string{real.path}, c.args...)
	return command{named: named, args: args}, true, nil
}

// wrappedHere says whether a wrapper's script is one that a package manager would wrap
// there: below the node_modules folder or store that its .bin lies in, in the workspace
// around that, or below the wrapper's own folder, as for pnpm's global programs.
func (s *search) wrappedHere(wrapper, script entry) bool {
	folder := parentOf(wrapper.path)
	if !strings.HasSuffix(folder, "/node_modules/.bin") {
		return !s.tooBroad(folder) && inside(script.path, folder)
	}
	if inside(script.path, s.store(wrapper.path)) {
		return true
	}
	root := s.workspaceRoot(parentOf(parentOf(folder)))
	return root != "" && inside(script.path, root)
}

// longHashbang follows what pip writes when a path is too long or holds a blank: a shell
// script whose second line executes the interpreter, and which is a Python script too,
// where that line is a string.
func (s *search) longHashbang(c command, found entry, head []byte) (command, bool, error) {
	_, line, _ := bytes.Cut(head, []byte("\n'''exec' "))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	word, ok := strings.CutSuffix(strings.TrimSpace(string(line)), ` "$0" "$@"`)
	if !ok {
		return command{}, false, nil
	}
	named := ""
	beside := `"$(dirname -- "$(realpath -- "$0")")"/`
	switch rest, relocatable := strings.CutPrefix(word, beside); {
	case relocatable:
		// uv's form for environments that may be moved.
		if name := strings.Trim(rest, `'"`); isPlainName(name) {
			named = join(parentOf(found.path), name)
		}
	case strings.HasPrefix(word, `"`) && strings.HasSuffix(word, `"`) && len(word) > 2:
		named = word[1 : len(word)-1]
	default:
		named = word
	}
	if !strings.HasPrefix(named, "/") || strings.ContainsAny(named, "\"$`\\") {
		return command{}, false, nil
	}
	if _, err := s.startable(named); err != nil {
		return command{}, true, interpreterError(c.named, err)
	}
	s.through(c, found)
	s.script = c.named
	s.need(Need{Path: found.path, Why: "script " + baseOf(c.named)})
	return command{named: named, args: append([]string{c.named}, c.args...)}, true, nil
}
