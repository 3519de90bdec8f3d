package main

import (
	"path/filepath"
	"slices"
	"strings"

	"stockade/sandbox/packages"
)

// starters are programs that start the one that their words name, each with the number of its
// own words without a dash. The jail would be the starter's: no profile is for it, and its
// kernel rules would let it start no other program.
var starters = map[string]int{
	"env": 0, "nohup": 0, "nice": 0, "ionice": 0, "stdbuf": 0, "setsid": 0, "time": 0, "timeout": 1, "chrt": 1, "taskset": 1,
	"flock": 1, "xargs": 0, "sudo": 0, "doas": 0, "runuser": 0, "unshare": 0, "nsenter": 0, "systemd-run": 0, "dbus-run-session": 0,
	"xvfb-run": 0, "bwrap": 0, "firejail": 0, "strace": 0, "script": 0, "chroot": 1, "setpriv": 0, "busybox": 0,
}

// startsAnother says why a command line stays that starts a server in a way that its words do
// not tell: a shell's line, and programs that start others; "" for none. What package packages
// can rewrite is for it to say.
func startsAnother(line []string) string {
	if w := packages.Wrapped(line); w != nil && (w.Refused || w.Runs != nil) {
		return ""
	}
	switch base := filepath.Base(line[0]); base {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		if flag := lineFlag(line[1:]); flag != "" {
			return base + " " + flag + " starts what a shell's line says: the server would need the shell and every program in it; write the program itself"
		}
	default:
		if own, known := starters[base]; known {
			why := base + " starts another program: write that program itself"
			if inner, set := startedBy(line[1:], own); inner != nil {
				why += ": " + shellWords(maskArguments(inner))
				if len(set) > 0 {
					why += ", with " + strings.Join(set, ", ") + " in the entry's variables"
				}
			}
			return why
		}
	}
	return ""
}

// lineFlag is the flag before a shell's line; "" for a script and for what it reads itself. What
// follows a script is the script's.
func lineFlag(args []string) string {
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "--command" || strings.HasPrefix(a, "--command="):
			return "--command"
		case a == "--rcfile", a == "--init-file":
			i++
		case strings.HasPrefix(a, "--") && a != "--":
		case len(a) < 2 || a[0] != '-' && a[0] != '+' || a == "--":
			return ""
		case strings.Contains(a[1:], "c"):
			return a
		case strings.ContainsAny(a[1:], "oO"):
			i++ // the option's name
		}
	}
	return ""
}

// startedBy is the command line behind a starter's own words, and the names of variables that it
// sets; nil when a flag stands there, whose value nobody knows here.
func startedBy(args []string, own int) (inner, set []string) {
	for i, a := range args {
		name, _, assigns := strings.Cut(a, "=")
		switch {
		case strings.HasPrefix(a, "-"):
			return nil, nil
		case assigns && !slices.Contains([]string{"", "/"}, name) && !strings.ContainsAny(name, "/."):
			set = append(set, name)
		case own > 0:
			own--
		default:
			return args[i:], set
		}
	}
	return nil, nil
}
