package profiles

import (
	"fmt"
	"math/bits"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"stockade/sandbox"
)

// Checks of single values. Each takes the text as written and returns it in its normal
// form, or what is wrong with it.

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func digit(c byte) bool  { return c >= '0' && c <= '9' }

// maxName keeps a profile's name usable as a part of a file name.
const maxName = 64

// checkName judges a profile's name. It becomes a part of file names.
func checkName(s string) (string, *problem) {
	const hint = "letters, digits, dot, dash and underscore, beginning with a letter or digit"
	switch {
	case s == "":
		return "", wrong(hint, "a profile's name cannot be empty")
	case len(s) > maxName:
		return "", wrong("", "a profile's name has at most %d letters", maxName)
	case strings.HasSuffix(s, ".yaml"):
		return "", wrong("leave out .yaml", "%q is a file, not a profile's name", s)
	case !letter(s[0]) && !digit(s[0]):
		return "", wrong(hint, "%q is not a profile's name", s)
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && !digit(c) && c != '.' && c != '-' && c != '_' {
			return "", wrong(hint, "%q is not a profile's name", s)
		}
	}
	return s, nil
}

// packageKinds are the registries whose names match.packages knows.
var packageKinds = []string{"npm", "pypi"}

func checkPackage(s string) (string, *problem) {
	kind, name, found := strings.Cut(s, ":")
	if !found {
		return "", wrong(fmt.Sprintf("write %q", "npm:"+s), "package %q has no kind", s)
	}
	known := false
	for _, k := range packageKinds {
		known = known || k == kind
	}
	switch {
	case !known:
		return "", wrong("known are "+strings.Join(packageKinds, ", "), "package kind %q is not known", kind)
	case name == "":
		return "", wrong("", "package %q has no name", s)
	case strings.ContainsAny(name, " \n\t"):
		return "", wrong("", "a package's name cannot hold spaces")
	case strings.LastIndexByte(name, '@') > 0:
		return "", wrong("leave out the version", "package %q names a version", s)
	}
	return s, checkGlob(name)
}

func checkCommand(s string) (string, *problem) {
	if strings.ContainsAny(s, "/\x00") {
		return "", wrong("write the command's name without folders", "command %q holds a folder", s)
	}
	return s, checkGlob(s)
}

func checkTool(s string) (string, *problem) { return s, checkGlob(s) }

// checkGlob refuses patterns that could never match.
func checkGlob(s string) *problem {
	if strings.ContainsFunc(s, unicode.IsControl) {
		return wrong("close the quotes on its own line", "a pattern goes over several lines")
	}
	if _, err := path.Match(s, ""); err != nil {
		return wrong(`* and ? and [...] are the signs; put \ before one that is meant`, "%q is not a pattern", s)
	}
	if strings.Trim(s, "*") == "" {
		return wrong("write the beginning of the names that are meant", "%q matches everything", s)
	}
	return nil
}

// checkProgram judges an entry of filesystem.execute: a name, or an absolute path.
func checkProgram(s string) (string, *problem) {
	if !strings.ContainsAny(s, "/$~") {
		if strings.ContainsAny(s, "*?\x00") {
			return "", wrong("name each program", "%q is not a program's name: there are no patterns here", s)
		}
		if s == "." || s == ".." {
			return "", wrong("name the program", "%q is a folder", s)
		}
		return s, nil
	}
	s, bad := checkPath(s)
	if bad != nil {
		return "", bad
	}
	if strings.HasSuffix(s, "/") {
		return "", wrong("name the program itself: folders cannot be executed", "%q is a folder", s)
	}
	for _, v := range []string{"${roots}", "${args}", "${private}", "${tmp}"} {
		if strings.HasPrefix(s, v) {
			return "", wrong("install the program where the server cannot change it", "a program cannot lie in %s: the server could replace it", v)
		}
	}
	return s, nil
}

// checkInside judges a pattern for names inside grants.
func checkInside(s string) (string, *problem) {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "", wrong("remove it", "a path cannot hold a NUL byte")
	case s[0] == '/' || s[0] == '~' || s[0] == '$':
		return "", wrong(`write it relative to the grant, such as "**/.git/hooks"`, "%q is not relative", s)
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." || part == "." {
			return "", wrong("write the name as it stands inside the grant", "%q leaves the grant or names it", s)
		}
		if part == "" {
			return "", wrong("", "%q has an empty part", s)
		}
		if _, err := path.Match(part, ""); err != nil {
			return "", wrong(`* and ? and [...] are the signs; put \ before one that is meant`, "%q is not a pattern", s)
		}
	}
	return s, nil
}

func checkSyscall(s string) (string, *problem) {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && !digit(c) && c != '_' {
			return "", wrong("write the kernel's name, such as inotify_add_watch", "%q is not a system call", s)
		}
	}
	return s, nil
}

// checkSyscallFile judges syscalls.profile: the word default, or a file.
func checkSyscallFile(s string) (string, *problem) {
	switch {
	case strings.IndexByte(s, 0) >= 0:
		return "", wrong("remove it", "a path cannot hold a NUL byte")
	case s[0] == '~' || s[0] == '$':
		return "", wrong("write an absolute path, or one relative to the profile", "variables are not known here")
	case s == SyscallsDefault || strings.ContainsAny(s, "/."):
		return s, nil
	}
	if near := nearest(s, []string{SyscallsDefault}); near != "" {
		return "", wrong(fmt.Sprintf("did you mean %q?", near), "%q is neither %q nor a file", s, SyscallsDefault)
	}
	return "", wrong(fmt.Sprintf("a file beside the profile is %q", "./"+s), "%q is neither %q nor a file", s, SyscallsDefault)
}

// layerRule says whether a profile may name a layer in missing.allow, and why not.
type layerRule struct {
	layer sandbox.Layer
	never string // "": it may be named
	hint  string
}

const (
	jailItself = "it is the jail itself"
	notNeeded  = "no profile needs it: the filter refuses what it would hold"
)

var layerRules = []layerRule{
	{layer: sandbox.LayerRefer},
	{layer: sandbox.LayerTruncate},
	{layer: sandbox.LayerTCP},
	{layer: sandbox.LayerScopeSignals},
	{layer: sandbox.LayerScopeAbstract},
	{layer: sandbox.LayerFiles, never: jailItself},
	{layer: sandbox.LayerSeccomp, never: jailItself},
	{layer: sandbox.LayerNoNewPrivs, never: jailItself},
	{layer: sandbox.LayerCapabilities, never: jailItself},
	{layer: sandbox.LayerDescriptors, never: jailItself},
	{layer: sandbox.LayerEnvironment, never: jailItself},
	{layer: sandbox.LayerLimits, never: jailItself},
	{layer: sandbox.LayerTerminal, never: jailItself},
	{layer: sandbox.LayerIoctlDev, never: notNeeded, hint: "remove it"},
	{layer: sandbox.LayerUnix, never: notNeeded, hint: "remove it"},
	{layer: sandbox.LayerUDP, never: notNeeded, hint: "remove it"},
	{layer: sandbox.LayerCgroup, never: "it holds only limits that a profile asks for", hint: "remove limits.memory and limits.processes instead"},
}

func checkLayer(s string) (string, *problem) {
	var names []string
	for _, r := range layerRules {
		if string(r.layer) != s {
			if r.never == "" {
				names = append(names, string(r.layer))
			}
			continue
		}
		if r.never == "" {
			return s, nil
		}
		hint := r.hint
		if hint == "" {
			hint = "stockade doctor says what this kernel can enforce"
		}
		return "", wrong(hint, "layer %q cannot be missing: %s", s, r.never)
	}
	hint := "known are " + strings.Join(names, ", ")
	if near := nearest(s, names); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return "", wrong(hint, "layer %q is not known", s)
}

// checkPort reads a TCP port. It is checked before it is narrowed: 65616 is not port 80.
func checkPort(s string) (uint16, *problem) {
	if !isDigits(s) {
		if a, b, found := strings.Cut(s, "-"); found && isDigits(a) && isDigits(b) {
			return 0, wrong("list each port", "port ranges such as %s are not read", s)
		}
		return 0, wrong("a number from 1 to 65535", "%q is not a port", s)
	}
	if s[0] == '0' && s != "0" {
		return 0, wrong("write it without leading zeros", "%q is not a port", s)
	}
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 {
		return 0, wrong("a number from 1 to 65535", "port %s is out of range", s)
	}
	return uint16(port), nil
}

func checkCount(s string) (uint64, *problem) {
	if !isDigits(s) || s[0] == '0' && s != "0" {
		return 0, wrong("write digits only", "%q is not a number", s)
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, wrong("", "%s is too large", s)
	}
	return n, nil
}

// sizeUnits are the units of sizes. 1G alone is not one of them: half the world reads it
// as 10^9 bytes and half as 2^30.
var sizeUnits = []struct {
	name  string
	bytes uint64
}{
	{"B", 1},
	{"kB", 1e3},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"KiB", 1 << 10},
	{"kiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
}

func checkSize(s string) (uint64, *problem) {
	const hint = "write bytes, or a number with a unit: 512MiB, 1GB"
	end := 0
	for end < len(s) && digit(s[end]) {
		end++
	}
	number, unit := s[:end], s[end:]
	switch {
	case number == "":
		return 0, wrong(hint, "%q is not a size", s)
	case strings.HasPrefix(unit, "."):
		return 0, wrong("write a whole number of a smaller unit, such as 1536MiB", "sizes have no fractions: %q", s)
	case number[0] == '0' && number != "0":
		return 0, wrong("write it without leading zeros", "%q is not a size", s)
	}
	factor := uint64(1)
	if unit != "" {
		factor = 0
		for _, u := range sizeUnits {
			if u.name == unit {
				factor = u.bytes
			}
		}
	}
	if factor == 0 {
		if len(unit) == 1 && strings.Contains("kKmMgGtT", unit) {
			u := strings.ToUpper(unit)
			return 0, wrong(fmt.Sprintf("write %s%siB (1024) or %s%sB (1000)", number, u, number, u), "%q has two meanings", s)
		}
		return 0, wrong(hint, "%q is not a size", s)
	}
	n, err := strconv.ParseUint(number, 10, 64)
	high, bytes := bits.Mul64(n, factor)
	if err != nil || high != 0 {
		return 0, wrong("", "%s is too large", s)
	}
	return bytes, nil
}

func checkDuration(s string) (string, *problem) {
	const hint = "write a number with a unit: 60s, 2m"
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return "", wrong(hint, "%q is not a duration", s)
	case d <= 0:
		return "", wrong(hint, "%q is not longer than nothing", s)
	}
	return s, nil
}
