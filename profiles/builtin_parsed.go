//go:build profilesgenerate

package profiles

// parsedBuiltin parses. Only the generator is built with it: when the types change, the
// generated file may not compile.
func parsedBuiltin(name string) (*Profile, bool) { return parseBuiltin(name) }
