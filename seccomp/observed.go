package seccomp

import "slices"

// observedFiles are the calls that name a file and whose outcome a file's own permissions do
// not decide alone: Landlock has a right for each. What only looks at a file (stat, access,
// readlink) it does not cover, so there is nothing to tell of.
var observedFiles = [...]string{
	"open", "openat", "openat2", "creat", "execve", "execveat",
	"mkdir", "mkdirat", "mknod", "mknodat", "symlink", "symlinkat", "link", "linkat",
	"unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "truncate",
}

// observed makes the calls wait that an observer is told of, whatever their arguments: it
// answers each with what the same policy without observation would ([Program.Verdict]). So
// these rules open nothing, and what they let wait is not yet allowed. A call that is refused
// whatever its arguments stays refused here, without a wait.
//
// Beside that they only take away, as every filter with a listener has to: see
// [listenerRules] and [parentRules].
func (p Policy) observed(rules ruleSet) {
	if p.Observation == Unobserved {
		return
	}
	for _, name := range append(slices.Clone(observedFiles[:]), "socket") {
		if have, exists := rules[name]; exists && !refusesAlways(have) {
			rules[name] = []rule{notify()}
		}
	}
}

// aroundObserver are what a process must not do to a filter with a listener, for the calls
// that a person can open wholly.
func (p Policy) aroundObserver(name string) []rule {
	if p.Observation == Unobserved {
		return nil
	}
	switch name {
	case "seccomp":
		return listenerRules()
	case "prctl":
		return parentRules()
	}
	return nil
}

// Observes says whether a call is one that an observer is told of.
func Observes(name string) bool {
	return name == "socket" || slices.Contains(observedFiles[:], name)
}
