package profiles

import (
	"fmt"
	"path/filepath"
	"strings"
)

// variable is one of the names that ${...} knows. There is one expander, for every list,
// value and flag.
type variable uint8

const (
	varRoots variable = iota
	varHome
	varCwd
	varRepo
	varPrivate
	varTmp
	varRuntime
	varArgs
	variableCount
)

var variableNames = [variableCount]string{
	varRoots: "roots", varHome: "home", varCwd: "cwd", varRepo: "repo",
	varPrivate: "private", varTmp: "tmp", varRuntime: "runtime", varArgs: "args",
}

const knownVariables = "known are ${roots} ${home} ${cwd} ${repo} ${private} ${tmp} ${runtime} ${args}; $$ is a dollar sign"

func lookUpVariable(name string) (variable, bool) {
	for i, known := range variableNames {
		if known == name {
			return variable(i), true
		}
	}
	return 0, false
}

// nextVariable finds the first variable of a text: before is what comes before it, with
// doubled dollar signs made single, rest is what comes after it. Without a variable, found
// is false and before is the whole text.
func nextVariable(text string) (before string, v variable, rest string, found bool, bad *problem) {
	at := strings.IndexByte(text, '$')
	if at < 0 {
		return text, 0, "", false, nil
	}
	var b strings.Builder
	for strings.HasPrefix(text[at:], "$$") {
		b.WriteString(text[:at+1])
		text = text[at+2:]
		if at = strings.IndexByte(text, '$'); at < 0 {
			b.WriteString(text)
			return b.String(), 0, "", false, nil
		}
	}
	b.WriteString(text[:at])
	v, rest, bad = readVariable(text[at+1:])
	return b.String(), v, rest, bad == nil, bad
}

// readVariable reads what follows a dollar sign.
func readVariable(tail string) (v variable, rest string, bad *problem) {
	if end := strings.IndexByte(tail, '}'); strings.HasPrefix(tail, "{") && end > 0 {
		name := tail[1:end]
		if v, known := lookUpVariable(name); known {
			return v, tail[end+1:], nil
		}
		return 0, "", wrong(nearVariable(name), "variable ${%s} is not known", name)
	}
	end := 0
	for end < len(tail) && (letter(tail[end]) || tail[end] == '_' || end > 0 && digit(tail[end])) {
		end++
	}
	if end > 0 {
		name := tail[:end]
		return 0, "", wrong(nearVariable(name), "$%s is a shell's spelling, and the host's variables are not known here", name)
	}
	return 0, "", wrong(knownVariables, "a dollar sign that begins no variable")
}

func nearVariable(name string) string {
	if near := nearest(name, variableNames[:]); near != "" {
		return fmt.Sprintf("did you mean ${%s}?", near)
	}
	return knownVariables
}

// maxPath is PATH_MAX of Linux with its final NUL byte.
const maxPath = 4096

// checkPath judges one path as written: absolute, or beginning with a variable or ~.
func checkPath(s string) (string, *problem) {
	switch {
	case s == "":
		return "", wrong("write an absolute path", "the path is empty")
	case strings.IndexByte(s, 0) >= 0:
		return "", wrong("remove it", "a path cannot hold a NUL byte")
	case len(s) >= maxPath:
		return "", wrong("", "the path is longer than %d bytes", maxPath-1)
	case strings.HasPrefix(s, "file:"):
		return "", wrong("write the path alone", "%q is a URL", s)
	case s[0] == '~' && len(s) > 1 && s[1] != '/':
		return "", wrong("write the absolute path", "%q: other people's home folders are not known", s)
	}
	if bad := checkNoGlob(s); bad != nil {
		return "", bad
	}
	before, _, rest, found, bad := nextVariable(s)
	switch {
	case bad != nil:
		return "", wrong(bad.hint, "%q: %s", s, bad.message)
	case found && before != "":
		return "", wrong("begin the path with it", "%q: a variable stands for an absolute path", s)
	case found && rest != "" && rest[0] != '/':
		return "", wrong("write a / behind it", "%q: a variable stands for a whole path", s)
	case !found && s[0] != '/' && s[0] != '~':
		return "", wrong(fmt.Sprintf("write %q, %q or an absolute path", "${cwd}/"+s, "${home}/"+s), "%q is a relative path", s)
	}
	if found {
		if _, _, _, again, bad := nextVariable(rest); bad != nil {
			return "", wrong(bad.hint, "%q: %s", s, bad.message)
		} else if again {
			return "", wrong("begin the path with it", "%q: a variable stands for an absolute path", s)
		}
	}
	return s, nil
}

func checkNoGlob(s string) *problem {
	if !strings.ContainsAny(s, "*?") {
		return nil
	}
	for _, tail := range []string{"/**", "/*", "/**/*"} {
		if tree, ok := strings.CutSuffix(s, tail); ok && tree != "" && !strings.ContainsAny(tree, "*?") {
			return wrong(fmt.Sprintf("write the folder itself, %q: a grant holds the whole tree", tree), "%q: there are no patterns in paths", s)
		}
	}
	return wrong("write each path, or the folder that holds them", "%q: there are no patterns in paths", s)
}

// checkRoot refuses roots that are made from themselves.
func checkRoot(s string) *problem {
	for _, v := range []string{"${roots}", "${args}"} {
		if strings.HasPrefix(s, v) {
			return wrong(`write "roots: args" for the server's own folder arguments, or name folders`, "a root cannot be made from %s", v)
		}
	}
	return nil
}

// checkValue judges a value of environment.set. Messages leave the value out.
func checkValue(s string) *problem {
	if strings.IndexByte(s, 0) >= 0 {
		return wrong("remove it", "a value cannot hold a NUL byte")
	}
	for {
		_, _, rest, found, bad := nextVariable(s)
		if bad != nil {
			return wrong(knownVariables, "the value holds an unknown variable")
		}
		if !found {
			return nil
		}
		s = rest
	}
}

// values is what the variables stand for in one compilation.
type values struct {
	of [variableCount][]string
	// unset says, for a variable without a value, why and what to do.
	unset [variableCount]problem
}

func (v *values) look(name variable) ([]string, *problem) {
	if len(v.of[name]) == 0 {
		u := v.unset[name]
		return nil, wrong(u.hint, "${%s} is not set: %s", variableNames[name], u.message)
	}
	return v.of[name], nil
}

// paths expands one path. Only ${roots} and ${args} give more than one. used is the
// variable that the path begins with, variableCount when there is none.
func (v *values) paths(s string) (out []string, used variable, bad *problem) {
	if s[0] == '~' {
		s = "${home}" + s[1:]
	}
	if strings.IndexByte(s, '$') < 0 {
		return []string{filepath.Clean(s)}, variableCount, nil
	}
	before, used, rest, found, bad := nextVariable(s)
	if bad != nil {
		return nil, variableCount, bad
	}
	if !found {
		return []string{filepath.Clean(before)}, variableCount, nil
	}
	if rest, _, _, _, bad = nextVariable(rest); bad != nil {
		return nil, used, bad
	}
	starts, bad := v.look(used)
	if bad != nil {
		return nil, used, bad
	}
	out = make([]string, len(starts))
	for i, start := range starts {
		out[i] = filepath.Clean(start + rest)
	}
	return out, used, nil
}

// value expands a value of environment.set, where a variable may stand anywhere and has to
// stand for one path. A leading ~ or ~/ means the home folder, as in paths.
func (v *values) value(s string) (string, *problem) {
	if s == "~" || strings.HasPrefix(s, "~/") {
		s = "${home}" + s[1:]
	}
	if strings.IndexByte(s, '$') < 0 {
		return s, nil
	}
	var b strings.Builder
	for {
		before, name, rest, found, bad := nextVariable(s)
		if bad != nil {
			return "", wrong(knownVariables, "the value holds an unknown variable")
		}
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		one, bad := v.look(name)
		if bad != nil {
			return "", bad
		}
		if len(one) > 1 {
			return "", wrong("write the folders out", "${%s} stands for %d paths here", variableNames[name], len(one))
		}
		b.WriteString(one[0])
		s = rest
	}
}
