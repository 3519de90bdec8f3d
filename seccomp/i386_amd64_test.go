package seccomp_test

import (
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
)

// callI386 makes getpid by its number of i386 and that machine's call instruction, which a
// 64-bit program can use too.
func callI386(s *jailtest.Stage, _ []string) func() jailtest.Outcome {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov $20, %eax
		0xcd, 0x80, // int $0x80
		0xc3, // ret
	}
	page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		s.Failf("making a page: %v", err)
	}
	copy(page, code)
	if err := unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC); err != nil {
		s.Failf("making the page executable: %v", err)
	}
	// A func value points to a word that holds the code's address. The code leaves its
	// result where Go looks for one, and changes no other register that Go keeps.
	start := unsafe.Pointer(&page[0])
	entry := &start
	getpid := *(*func() uintptr)(unsafe.Pointer(&entry))
	return func() jailtest.Outcome {
		if got := getpid(); int(got) != unix.Getpid() {
			return jailtest.Outcome{Errno: unix.ENOSYS, Value: int64(got)}
		}
		return jailtest.Outcome{}
	}
}
