// Command execonly executes its arguments and does nothing else: the least that a launcher
// written in Go can cost.
package main

import (
	"fmt"
	"os"
	"syscall"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: execonly PROGRAM [ARG]...")
		os.Exit(2)
	}
	err := syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	fmt.Fprintf(os.Stderr, "execonly: executing %q: %v\n", os.Args[1], err)
	os.Exit(127)
}
