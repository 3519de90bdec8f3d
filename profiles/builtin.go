package profiles

import (
	"embed"
	"slices"
)

//go:generate go test -tags profilesgenerate -run ^TestGenerated$ -update .

// builtinFile begins the file name of built-in profiles, in positions.
const builtinFile = "built-in "

// sources are the built-in profiles as a person would write them. Starting a server does
// not parse them: builtin_gen.go holds what they parse to.
//
//go:embed builtin/*.yaml
var sources embed.FS

// builtinNames lists the built-in profiles, sorted.
var builtinNames = [...]string{"base", "filesystem", "node", "python", "static"}

// BuiltinNames lists the built-in profiles, sorted.
func BuiltinNames() []string { return slices.Clone(builtinNames[:]) }

// Builtin returns a built-in profile as it is written, without what it extends.
func Builtin(name string) (*Profile, bool) { return parsedBuiltin(name) }

// BuiltinSource returns the text of a built-in profile.
func BuiltinSource(name string) ([]byte, bool) {
	if !slices.Contains(builtinNames[:], name) {
		return nil, false
	}
	text, err := sources.ReadFile("builtin/" + name + suffix)
	return text, err == nil
}

// parseBuiltin parses a built-in profile's text. Its positions say "built-in NAME".
func parseBuiltin(name string) (*Profile, bool) {
	text, ok := BuiltinSource(name)
	if !ok {
		return nil, false
	}
	p, err := parseNamed(builtinFile+name, text)
	if err != nil {
		return nil, false
	}
	p.Name.Value = name
	return p, true
}
