//go:build profilesgenerate

package profiles

// builtins is empty here. Only the generator is built with it: when the types change, the
// generated file may not compile.
var builtins [0]Profile
