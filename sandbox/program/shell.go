package program

import (
	"strings"
)

// shellCommandLine finds the script in the arguments of a POSIX shell.
func (s *search) shellCommandLine(e executable) {
	args := s.program.Args
	if baseOf(e.named) == baseOf(e.entry.path) && !isShellName(baseOf(e.named)) && len(args) > 0 {
		args = args[1:] // busybox sh: the first argument chose the shell
	}
	at, found := shellScript(args)
	s.note("the shell can start only programs that the profile lets execute")
	if !found {
		s.program.Args = args[at:]
		return
	}
	s.program.Args = args[at+1:]
	script, err := s.real(s.absolute(args[at]))
	if err != nil || !script.regular() {
		s.note("the script %q was not found", args[at])
		return
	}
	s.program.Entry = script.path
	if !s.granting(script.path) {
		s.leaveOut(script.path)
		return
	}
	s.need(Need{Path: script.path, Why: "script " + baseOf(args[at])})
}

// shellScript finds the place of the script among a shell's arguments. Without one (-c,
// -s, or nothing), it is the place where arguments for the shell's own program begin.
func shellScript(args []string) (at int, found bool) {
	for at < len(args) {
		arg := args[at]
		switch {
		case arg == "--" || arg == "-":
			at++
			return at, at < len(args)
		case len(arg) < 2 || arg[0] != '-' && arg[0] != '+':
			return at, true
		case arg == "--rcfile" || arg == "--init-file":
			at += 2
		case strings.HasPrefix(arg, "--"):
			at++
		default:
			// A group such as -euo: o and O take the next argument, c takes the program
			// itself from there, s reads it from standard input.
			at++
			at += strings.Count(arg, "o") + strings.Count(arg, "O")
			if arg[0] == '-' && strings.Contains(arg, "c") {
				return min(at+1, len(args)), false
			}
			if arg[0] == '-' && strings.Contains(arg, "s") {
				return min(at, len(args)), false
			}
		}
	}
	return len(args), false
}
