package sandbox

import (
	"errors"
	"fmt"
)

// ErrUnsupported is what every [UnsupportedError] is.
var ErrUnsupported = errors.New("not supported by this kernel")

// UnsupportedError says that the plan needs a layer that the running kernel lacks.
type UnsupportedError struct {
	Layer Layer
	Need  string // "Landlock ABI 6"
	Have  string // "ABI 3", "no Landlock"
	Since string // "Linux 6.12"
	// Waivable layers may be named in a profile's `missing: {allow: [...]}`.
	Waivable Waiver
}

// Waiver says whether a profile may agree to run without a layer.
type Waiver uint8

const (
	// NeverWaived layers are the jail itself.
	NeverWaived Waiver = iota
	// MayBeWaived layers may be absent by the profile's word.
	MayBeWaived
)

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: needs %s (%s), this kernel has %s", e.Layer, e.Need, e.Since, e.Have)
}

// Is makes every UnsupportedError an ErrUnsupported.
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// Hint is the cure, for a person.
func (e *UnsupportedError) Hint() string {
	if e.Waivable == MayBeWaived {
		return fmt.Sprintf(`write "missing: {allow: [%s]}" in the profile to run without this layer; stockade doctor says what that means`, e.Layer)
	}
	return "stockade doctor says what this kernel can enforce; it does not start servers without this layer"
}

// GrantError is a grant that cannot take effect.
type GrantError struct {
	Grant Grant
	Err   error
	Cure  string
}

func (e *GrantError) Error() string {
	return fmt.Sprintf("%s: granting %q: %v", e.Grant.Origin, e.Grant.Path, e.Err)
}

func (e *GrantError) Unwrap() error { return e.Err }

// Hint is the cure, for a person.
func (e *GrantError) Hint() string { return e.Cure }

// WeakerError says that the kernel reports less than was asked for.
type WeakerError struct {
	Layer Layer
	Asked string
	Found string
}

func (e *WeakerError) Error() string {
	return fmt.Sprintf("%s: asked for %s, the kernel reports %s", e.Layer, e.Asked, e.Found)
}

// Hint is the cure, for a person.
func (e *WeakerError) Hint() string {
	return "this must not happen; stockade did not start the server. Please report it with the output of stockade doctor"
}
