package profiles

import (
	"embed"
	"strings"
)

//go:generate go test -tags profilesgenerate -run ^TestGenerated$ -update .

// builtinFile begins the file name of built-in profiles, in positions.
const builtinFile = BuiltInSource

// BuiltInSource begins [Profile.File] of built-in profiles; their name follows.
const BuiltInSource = "built-in "

// sources are the built-in profiles as a person would write them. Starting a server does
// not parse them: builtins, in builtin_gen.go, are what they parse to, sorted by name. The
// compiler lays them out in the binary, so that their number costs a start nothing.
//
//go:embed builtin/*.yaml
var sources embed.FS

// BuiltinNames lists the built-in profiles, sorted.
func BuiltinNames() []string {
	names := make([]string, len(builtins))
	for i := range builtins {
		names[i] = builtins[i].Name.Value
	}
	return names
}

// findBuiltin returns the place of a name in builtins, -1 when it is none of them.
func findBuiltin(name string) int {
	for i := range builtins {
		if builtins[i].Name.Value == name {
			return i
		}
	}
	return -1
}

// matchBuiltin returns a copy of the first built-in profile whose match section fits, nil
// when none does.
func matchBuiltin(fits func(*Match) bool) *Profile {
	for i := range builtins {
		if fits(&builtins[i].Match) {
			p := builtins[i]
			return &p
		}
	}
	return nil
}

// Builtin returns a built-in profile as it is written, without what it extends.
func Builtin(name string) (*Profile, bool) {
	at := findBuiltin(name)
	if at < 0 {
		return nil, false
	}
	p := builtins[at]
	return &p, true
}

// BuiltinSource returns the text of a built-in profile.
func BuiltinSource(name string) ([]byte, bool) {
	if findBuiltin(name) < 0 {
		return nil, false
	}
	text, err := sources.ReadFile("builtin/" + name + suffix)
	return text, err == nil
}

// parseBuiltins parses the text of every built-in profile. Their positions say "built-in
// NAME".
func parseBuiltins() ([]Profile, error) {
	files, err := sources.ReadDir("builtin")
	if err != nil {
		return nil, err
	}
	var out []Profile
	for _, file := range files { // sorted by name
		text, err := sources.ReadFile("builtin/" + file.Name())
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(file.Name(), suffix)
		p, err := Parse(builtinFile+name, text)
		if err != nil {
			return nil, err
		}
		p.Name.Value = name
		out = append(out, *p)
	}
	return out, nil
}
