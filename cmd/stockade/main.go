// The server's own runtime counts processors; this process needs no more than it starts with.

//go:debug containermaxprocs=0
//go:debug updatemaxprocs=0

package main

import (
	"os"
	"runtime"
)

// The jail is a property of one thread, and execve(2) keeps what the calling thread has.
// Locking here, before main, makes that thread the process's first one, so that
// /proc/PID shows the jail of the server under the number that the host started.
func init() { runtime.LockOSThread() }

func main() {
	os.Exit(run(os.Args[1:], stdio{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
