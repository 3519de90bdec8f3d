package seccomp_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// change is one way to change a file's metadata.
type change struct {
	call string
	// onto says what the call names: a path, or an open descriptor.
	onto target
	do   func(path *byte, fd int) jailtest.Outcome
}

type target uint8

const (
	byPath target = iota
	byDescriptor
)

const (
	attributeName = "user.stockade"
	fsAttribute   = 469 // file_setattr
)

var (
	attribute      = append([]byte(attributeName), 0)
	attributeValue = []byte("changed")
	// aTime is set as access and change time; it is not the present.
	aTime = [2]unix.Timespec{{Sec: 1000}, {Sec: 2000}}
	aVal  = [2]unix.Timeval{{Sec: 1000}, {Sec: 2000}}
)

func pointerTo[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

const atHere = ^uintptr(99) // AT_FDCWD

// changes are all calls that change metadata on amd64; what a machine lacks is left out.
func changes() []change {
	own := uintptr(os.Getuid()) // an owner that everybody may set
	args := struct {
		value, size uint64
	}{uint64(pointerTo(&attributeValue[0])), uint64(len(attributeValue))}
	return append(oldChanges(own), []change{
		{"fchmodat", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_FCHMODAT, atHere, pointerTo(p), 0o777) }},
		{"fchmodat2", byPath, func(p *byte, _ int) jailtest.Outcome { return do(unix.SYS_FCHMODAT2, atHere, pointerTo(p), 0o777, 0) }},
		{"fchownat", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_FCHOWNAT, atHere, pointerTo(p), own, ^uintptr(0), 0)
		}},
		{"utimensat", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_UTIMENSAT, atHere, pointerTo(p), pointerTo(&aTime), 0)
		}},
		{"setxattr", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_SETXATTR, pointerTo(p), pointerTo(&attribute[0]), pointerTo(&attributeValue[0]), 7, 0)
		}},
		{"lsetxattr", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_LSETXATTR, pointerTo(p), pointerTo(&attribute[0]), pointerTo(&attributeValue[0]), 7, 0)
		}},
		{"setxattrat", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_SETXATTRAT, atHere, pointerTo(p), 0, pointerTo(&attribute[0]), pointerTo(&args), unsafe.Sizeof(args))
		}},
		{"fchmod", byDescriptor, func(_ *byte, fd int) jailtest.Outcome { return do(unix.SYS_FCHMOD, uintptr(fd), 0o777) }},
		{"fchown", byDescriptor, func(_ *byte, fd int) jailtest.Outcome { return do(unix.SYS_FCHOWN, uintptr(fd), own, ^uintptr(0)) }},
		{"utimensat", byDescriptor, func(_ *byte, fd int) jailtest.Outcome {
			return do(unix.SYS_UTIMENSAT, uintptr(fd), 0, pointerTo(&aTime), 0)
		}},
		{"fsetxattr", byDescriptor, func(_ *byte, fd int) jailtest.Outcome {
			return do(unix.SYS_FSETXATTR, uintptr(fd), pointerTo(&attribute[0]), pointerTo(&attributeValue[0]), 7, 0)
		}},
	}...)
}

// removals take away an attribute that the file has.
func removals() []change {
	return []change{
		{"removexattr", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_REMOVEXATTR, pointerTo(p), pointerTo(&attribute[0]))
		}},
		{"lremovexattr", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_LREMOVEXATTR, pointerTo(p), pointerTo(&attribute[0]))
		}},
		{"removexattrat", byPath, func(p *byte, _ int) jailtest.Outcome {
			return do(unix.SYS_REMOVEXATTRAT, atHere, pointerTo(p), 0, pointerTo(&attribute[0]))
		}},
		{"fremovexattr", byDescriptor, func(_ *byte, fd int) jailtest.Outcome {
			return do(unix.SYS_FREMOVEXATTR, uintptr(fd), pointerTo(&attribute[0]))
		}},
	}
}

func allChanges() map[string]change {
	all := map[string]change{}
	for _, c := range append(changes(), removals()...) {
		all[c.key()] = c
	}
	return all
}

func (c change) key() string {
	if c.onto == byDescriptor {
		return c.call + " on a descriptor"
	}
	return c.call
}

// onFile changes the metadata of a file: the change's key, the file.
func onFile(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	c, known := allChanges()[args[0]]
	if !known {
		s.Failf("no change is called %q", args[0])
	}
	path, err := unix.BytePtrFromString(args[1])
	if err != nil {
		s.Failf("reading the path: %v", err)
	}
	fd, err := unix.Open(args[1], unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		s.Failf("opening the file: %v", err)
	}
	return func() jailtest.Outcome { return c.do(path, fd) }
}

// openFile opens a path with flags and returns no descriptor.
func openFile(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	flags := number(s, args[1])
	path, err := unix.BytePtrFromString(args[0])
	if err != nil {
		s.Failf("reading the path: %v", err)
	}
	return func() jailtest.Outcome {
		return jailtest.Outcome{Errno: do(unix.SYS_OPENAT, atHere, pointerTo(path), flags, 0o600).Errno}
	}
}

func openFile2(s *jailtest.Stage, args []string) func() jailtest.Outcome {
	how := unix.OpenHow{Flags: uint64(number(s, args[1]))}
	path, err := unix.BytePtrFromString(args[0])
	if err != nil {
		s.Failf("reading the path: %v", err)
	}
	return func() jailtest.Outcome {
		return jailtest.Outcome{Errno: do(unix.SYS_OPENAT2, atHere, pointerTo(path), pointerTo(&how), unix.SizeofOpenHow).Errno}
	}
}

// newFile makes a file of the user's with an attribute and content.
func newFile(t *testing.T, user jailtest.User) string {
	t.Helper()
	path := filepath.Join(jailtest.Dir(t, user), "file")
	if err := os.WriteFile(path, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, attributeName, []byte("first"), 0); err != nil {
		t.Fatalf("setting an attribute: %v", err)
	}
	jailtest.Own(t, user, path)
	old := time.Unix(5000, 0)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	return path
}

// metadata is what a metadata call could change. The kernel keeps the change time.
type metadata struct {
	Mode, UID, GID uint32
	Atim, Mtim     unix.Timespec
	Ctim           unix.Timespec
	Attribute      string
}

func readMetadata(t *testing.T, path string) metadata {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	value := make([]byte, 64)
	n, err := unix.Getxattr(path, attributeName, value)
	if err != nil {
		n = copy(value, err.Error())
	}
	return metadata{st.Mode, st.Uid, st.Gid, st.Atim, st.Mtim, st.Ctim, string(value[:n])}
}

// TestKernelMetadata makes every metadata call on a real file in three jails' worth of
// policies and outside, and looks at the file.
func TestKernelMetadata(t *testing.T) {
	needNewCalls(t)
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for key, c := range allChanges() {
			t.Run(key, func(t *testing.T) {
				// The kernel counts change times in ticks: a file's own must be in the past.
				try := func(policy string, check func(*testing.T, jailtest.Result)) (changed bool) {
					t.Helper()
					path := newFile(t, user)
					before := readMetadata(t, path)
					waitForTick(t, filepath.Dir(path), before.Ctim)
					check(t, operate(t, user, policy, "on a file", key, path))
					return readMetadata(t, path) != before
				}
				if !try(outside, works) {
					t.Fatal("the call changes nothing outside the jail, so it proves nothing")
				}
				ignoring, refusing := inside(t, seccomp.Policy{}), inside(t, seccomp.Policy{Metadata: seccomp.MetadataRefuse})
				if c.onto == byDescriptor {
					if !try(ignoring, works) || !try(refusing, works) {
						t.Error("a call on a descriptor did not work in the jail")
					}
					return
				}
				if try(ignoring, works) {
					t.Error("the file changed under metadata: ignore")
				}
				if try(refusing, refused(unix.EPERM)) {
					t.Error("the file changed under metadata: refuse")
				}
			})
		}
	})
}

// needNewCalls asks for setxattrat, the youngest of the calls that change something here.
func needNewCalls(t *testing.T) {
	t.Helper()
	jailtest.Need(t, jailtest.Probe{Name: "setxattrat(2)", Since: "6.13", Check: func() error {
		if errno := do(unix.SYS_SETXATTRAT, atHere, bad, 0, bad, bad, 16).Errno; errno == unix.ENOSYS {
			return errno
		}
		return nil
	}})
}

// waitForTick returns when a new file in the folder gets a later change time than then.
func waitForTick(t *testing.T, dir string, then unix.Timespec) {
	t.Helper()
	for {
		path := filepath.Join(dir, "tick")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if st.Ctim.Nano() > then.Nano() {
			return
		}
	}
}

func TestKernelTruncation(t *testing.T) {
	older := seccomp.Policy{Truncation: seccomp.TruncationByFilter}
	const read, write, none = "0x80200", "0x80201", "0x80203" // with O_TRUNC and O_CLOEXEC
	tests := []struct {
		name, operation, flags string
		policy                 seccomp.Policy
		check                  func(*testing.T, jailtest.Result)
		want                   string // the file's content after the call in the jail
	}{
		{"asks to read", "open", read, older, refused(unix.EACCES), "content"},
		{"asks for nothing", "open", none, older, refused(unix.EACCES), "content"},
		{"asks to write", "open", write, older, works, ""},
		{"does not truncate", "open", "0x80000", older, works, "content"},
		{"flags by pointer", "open2", read, older, refused(unix.ENOSYS), "content"},
		{"left to Landlock", "open", read, seccomp.Policy{}, works, ""},
		{"left to Landlock, flags by pointer", "open2", read, seccomp.Policy{}, refused(unix.ENOSYS), "content"},
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, test := range tests {
			t.Run(test.name, func(t *testing.T) {
				path := newFile(t, user)
				test.check(t, operate(t, user, inside(t, test.policy), test.operation, path, test.flags))
				wantContent(t, path, test.want)
				free := newFile(t, user)
				works(t, operate(t, user, outside, test.operation, free, test.flags))
				wantContent(t, free, map[bool]string{true: "content"}[test.flags == "0x80000"])
			})
		}
	})
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}
