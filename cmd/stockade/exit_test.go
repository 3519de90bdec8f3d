package main

import (
	"errors"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/program"
)

func TestExitStatus(t *testing.T) {
	missing := &program.NotFoundError{Name: "x", Err: unix.ENOENT}
	tests := []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"an answer is no", &noError{answer: "no"}, 1},
		{"usage", &usageError{}, 125},
		{"a profile", profiles.Errors{{Message: "x"}}, 125},
		{"a grant", &sandbox.GrantError{}, 125},
		{"a layer", &sandbox.UnsupportedError{}, 125},
		{"anything else", errors.New("x"), 125},
		{"a container client", &wrappedError{}, 125},
		{"program not found", missing, 127},
		{"found, and cannot run", &program.NotExecutableError{}, 126},
		{"its interpreter not found", &program.NotExecutableError{Err: missing}, 126},
		{"exec: gone", &sandbox.ExecError{Errno: unix.ENOENT}, 127},
		{"exec: refused", &sandbox.ExecError{Errno: unix.EACCES}, 126},
		{"exec: no program", &sandbox.ExecError{Errno: unix.ENOEXEC}, 126},
		{"exec: too long", &sandbox.ExecError{Errno: unix.E2BIG}, 125},
		{"told by a child", &toldError{status: 127}, 127},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := exitStatus(tt.err); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
			if tt.err == nil {
				return
			}
			if got := exitStatus(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
				t.Errorf("wrapped: got %d, want %d", got, tt.want)
			}
			if hintOf(tt.err) == "" {
				t.Error("no hint")
			}
		})
	}
}
