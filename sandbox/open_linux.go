package sandbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// GrantState is what became of a grant when it was opened.
type GrantState uint8

const (
	// Granted: opened; its descriptor is what the rule will name.
	Granted GrantState = iota + 1
	// Skipped: optional and absent.
	Skipped
	// Pending: a private folder that Enter makes.
	Pending
)

// OpenedGrant is a grant with the object that its path named at one moment. Rules hold
// that object, whatever the path names later.
type OpenedGrant struct {
	Grant
	Target string // real path of the object; differs from Path when links were followed
	Kind   Kind
	State  GrantState
	fd     int // O_PATH; -1 unless Granted
}

// Opened is a plan with every path of it opened.
type Opened struct {
	Plan   Plan
	Grants []OpenedGrant
	made   []string // folders that Enter made and a failed start removes
}

// Open resolves every path of a plan once and keeps it by descriptor. It changes nothing.
// Errors are *[GrantError] values, which name the grant and where it was written, or a
// *[JailedError].
func Open(p Plan) (*Opened, error) {
	o := &Opened{Plan: p, Grants: make([]OpenedGrant, 0, len(p.Grants))}
	guards := newGuards(p.Guarded)
	for _, g := range p.Grants {
		og, err := openGrant(p, g)
		if err == nil {
			err = guards.check(p, og)
		}
		if err != nil {
			if og.fd >= 0 {
				unix.Close(og.fd)
			}
			o.Close()
			return nil, err
		}
		o.Grants = append(o.Grants, og)
	}
	if err := o.check(); err != nil {
		o.Close()
		return nil, err
	}
	return o, nil
}

// Close gives the descriptors back.
func (o *Opened) Close() {
	for i := range o.Grants {
		if o.Grants[i].fd >= 0 {
			unix.Close(o.Grants[i].fd)
			o.Grants[i].fd = -1
		}
	}
}

// openGrant follows links once, with O_PATH, which needs no permission on the object
// itself, never blocks on a fifo and has no side effect on a device (open(2)).
func openGrant(p Plan, g Grant) (OpenedGrant, error) {
	og := OpenedGrant{Grant: g, fd: -1}
	if strings.IndexByte(g.Path, 0) >= 0 {
		return og, &GrantError{Grant: g, Err: errors.New("a path cannot hold a NUL byte"), Cure: "write the path without it"}
	}
	if !strings.HasPrefix(g.Path, "/") {
		return og, &GrantError{Grant: g, Err: errors.New("a path has to be absolute"), Cure: "begin it with / or a variable such as ${home}"}
	}
	if g.Path != "" && (g.Path == p.Home.Path || g.Path == p.Tmp.Path) {
		og.Target, og.Kind, og.State = g.Path, KindFolder, Pending
		return og, nil
	}
	fd, err := openPath(g)
	if err != nil {
		if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
			if jailed := ProbeOpen(); jailed != nil {
				return og, jailed
			}
		}
		if g.Presence == Optional && absent(err) {
			og.State = Skipped
			return og, nil
		}
		return og, &GrantError{Grant: g, Err: err, Cure: openCure(err)}
	}
	og.fd = fd
	if og.Kind, err = kindOf(fd); err != nil {
		return og, &GrantError{Grant: g, Err: err}
	}
	og.Target = g.Path
	// What every jail has is checked against nothing and shown by its own name, and what a
	// runtime needs was opened without links: its path is its real path.
	if g.Origin.Source != OriginAlways && g.Origin.Source != OriginRuntime {
		if og.Target, err = targetOf(fd); err != nil {
			return og, &GrantError{Grant: g, Err: err}
		}
	}
	og.State = Granted
	return og, fits(og)
}

// fits refuses grants that could not take effect on the kind of their object.
func fits(og OpenedGrant) error {
	wrong := func(what, cure string) error {
		return &GrantError{Grant: og.Grant, Err: errors.New(what), Cure: cure}
	}
	switch {
	case og.Want != KindAny && og.Want != og.Kind:
		return wrong(fmt.Sprintf("is a %s, not a %s", og.Kind, og.Want), fmt.Sprintf("name a %s", og.Want))
	case og.Access == Execute && og.Kind != KindFile:
		return wrong(fmt.Sprintf("is a %s; only a file can be executed", og.Kind), "name the program itself")
	case og.Access == Device && og.Kind != KindDevice:
		return wrong(fmt.Sprintf("is a %s, not a device", og.Kind), "name a device node")
	case og.Kind == KindSocket:
		return wrong("is a socket; reading it means connecting to it", "sockets are granted under network.unix")
	}
	return nil
}

// openPath opens the object of a grant. Links in what people write are followed, once. What
// a runtime needs was resolved before: a link there now is one that was put there since,
// and is refused (openat2(2), RESOLVE_NO_SYMLINKS, Linux 5.6). EINTR is retried: network
// file systems may answer it.
func openPath(g Grant) (int, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if g.Origin.Source == OriginRuntime {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS
	}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, g.Path, &how)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// JailedError says that a filter of an outer jail refuses what starting a jail needs.
type JailedError struct {
	Call string // "openat2(2)"
	Err  error  // the filter's answer
}

// Error names the call and the answer.
func (e *JailedError) Error() string {
	return fmt.Sprintf("this process is in a jail already: an outer jail refuses %s: %v", e.Call, e.Err)
}

// Unwrap returns the filter's answer.
func (e *JailedError) Unwrap() error { return e.Err }

// Hint is the cure, for a person.
func (e *JailedError) Hint() string {
	return "one jail cannot start in another: start this server from outside, as the host's own child"
}

// ProbeOpen tells whether plans can be opened at all; it changes nothing. openat2(2) is
// Linux 5.6, older than any kernel with Landlock (5.13), so a newer kernel that does not
// know it has a filter in front that pretends so, or forbids it: a *[JailedError].
func ProbeOpen() error {
	fd, err := unix.Openat2(unix.AT_FDCWD, "/", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC})
	if err == nil {
		return unix.Close(fd)
	}
	if knowsOpenat2() && (errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)) {
		return &JailedError{Call: "openat2(2)", Err: err}
	}
	return fmt.Errorf("opening the root folder with openat2(2): %w", err)
}

// knowsOpenat2 tells whether the kernel's version is 5.6 or later.
func knowsOpenat2() bool {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return false
	}
	major, rest, _ := strings.Cut(unix.ByteSliceToString(u.Release[:]), ".")
	minor, _, _ := strings.Cut(rest, ".")
	first, err := strconv.Atoi(major)
	if err != nil {
		return false
	}
	second, err := strconv.Atoi(strings.TrimRight(minor, "-+abcdefghijklmnopqrstuvwxyz_"))
	return first > 5 || first == 5 && err == nil && second >= 6
}

// absent is the one kind of failure that an optional grant may have: a path that is not
// there. A path that is there and cannot be reached is an error.
func absent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
}

func openCure(err error) string {
	switch {
	case absent(err):
		return "make it, correct the path, or list it under filesystem.optional"
	case errors.Is(err, unix.ELOOP):
		return "the link leads back to itself: name the real path"
	case errors.Is(err, unix.EACCES):
		return "the person who starts the server has to be able to reach it"
	}
	return ""
}

func kindOf(fd int) (Kind, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return KindAny, fmt.Errorf("asking for its kind: %w", err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return KindFolder, nil
	case unix.S_IFREG:
		return KindFile, nil
	case unix.S_IFCHR, unix.S_IFBLK:
		return KindDevice, nil
	case unix.S_IFIFO:
		return KindFifo, nil
	case unix.S_IFSOCK:
		return KindSocket, nil
	}
	return KindAny, fmt.Errorf("unknown kind of file (mode %#o)", st.Mode)
}

// targetOf asks the kernel for the path of an open object. It needs /proc.
func targetOf(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlink(fdPath(fd), buf[:])
	if err != nil {
		return "", fmt.Errorf("asking for its real path: %w", err)
	}
	if n == len(buf) {
		return "", errors.New("asking for its real path: longer than PATH_MAX")
	}
	return string(buf[:n]), nil
}

func fdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// check looks at all opened grants together.
func (o *Opened) check() error {
	if err := o.checkProgram(); err != nil {
		return err
	}
	for i := range o.Grants {
		if err := o.checkPlanted(&o.Grants[i]); err != nil {
			return err
		}
	}
	return o.checkNamed()
}

// checkProgram establishes that the file to execute is itself granted for execution: an
// exec that Landlock would refuse is better told here.
func (o *Opened) checkProgram() error {
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.Access == Execute && g.State == Granted && g.Target == o.Plan.File {
			return nil
		}
	}
	return fmt.Errorf("the program %q is not among the execute grants of the plan", o.Plan.File)
}
