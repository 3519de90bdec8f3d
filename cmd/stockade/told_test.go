package main

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// checkTold asserts that stderr is one error line that holds a text, and one hint line.
func checkTold(fatalf func(string, ...any), stderr, text string) {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	if len(lines) != 2 {
		fatalf("want an error and a hint, got %d lines:\n%s", len(lines), stderr)
		return
	}
	message, ok := strings.CutPrefix(lines[0], "stockade: error: ")
	if !ok || !strings.Contains(message, text) {
		fatalf("want an error line with %q, got %q", text, lines[0])
	}
	if hint, ok := strings.CutPrefix(lines[1], "stockade: hint: "); !ok || hint == "" {
		fatalf("want a hint line, got %q", lines[1])
	}
}

func installFilter(prog *unix.SockFprog) error {
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(prog)))
	if errno != 0 {
		return errno
	}
	return nil
}
