package jailtest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

// User is an identity to run a victim as. The zero value is this process's own.
type User struct {
	// Name is a word for subtests and messages: "root", "ordinary", "self".
	Name string
	// UID and GID are the numbers to switch to; used when Switch is set.
	UID, GID uint32
	// Switch says that the victim changes its identity. Only root can.
	Switch Switch
}

// Switch says whether a victim keeps the test's identity.
type Switch uint8

const (
	// KeepIdentity runs the victim with the test's own user and groups.
	KeepIdentity Switch = iota
	// ChangeIdentity runs it with the given user and group, and no other groups.
	ChangeIdentity
)

// ordinaryID is the user and group of victims that must not be root: "nobody" on every
// distribution, so it owns no file.
const ordinaryID = 65534

// String returns the name, for messages.
func (u User) String() string {
	if u.Name == "" {
		return "self"
	}
	return u.Name
}

func (u User) credential() *syscall.Credential {
	if u.Switch == KeepIdentity {
		return nil
	}
	return &syscall.Credential{Uid: u.UID, Gid: u.GID}
}

// Users returns the identities that a kernel test has to hold for: root and an ordinary
// user when the test runs as root, else only the test's own.
//
// Root hides ordinary permission errors, and an ordinary user hides what capabilities
// would have allowed, so neither can stand for the other.
func Users(t testing.TB) []User {
	t.Helper()
	if os.Getuid() != 0 {
		return []User{{Name: "ordinary", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}} //nolint:gosec // ids are 32 bits
	}
	return []User{
		{Name: "root"},
		{Name: "ordinary", UID: ordinaryID, GID: ordinaryID, Switch: ChangeIdentity},
	}
}

// EachUser runs a subtest for every identity of [Users].
func EachUser(t *testing.T, test func(t *testing.T, user User)) {
	t.Helper()
	for _, user := range Users(t) {
		t.Run(user.String(), func(t *testing.T) { test(t, user) })
	}
}

// place is the folder that holds the copied test binary and the folders of victims. The
// folders that the go command and testing.T make are closed to other users.
var place struct {
	sync.Mutex
	dir    string
	binary string
}

func openPlace() (string, error) {
	if place.dir != "" {
		return place.dir, nil
	}
	dir, err := os.MkdirTemp("", "stockade-jailtest-")
	if err != nil {
		return "", fmt.Errorf("making a folder for victims: %w", err)
	}
	place.dir = dir
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // other users must get in
		return "", fmt.Errorf("opening the folder for victims: %w", err)
	}
	return dir, nil
}

func removePlace() error {
	place.Lock()
	defer place.Unlock()
	if place.dir == "" {
		return nil
	}
	if err := os.RemoveAll(place.dir); err != nil {
		return fmt.Errorf("removing the folder for victims: %w", err)
	}
	place.dir, place.binary = "", ""
	return nil
}

// Binary returns the path of a copy of the running test binary that every user may read
// and execute. It is made at the first call and removed by [Main].
func Binary(t testing.TB) string {
	t.Helper()
	place.Lock()
	defer place.Unlock()
	if place.binary != "" {
		return place.binary
	}
	dir, err := openPlace()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "victim")
	if err := copyProgram(binary); err != nil {
		t.Fatalf("copying the test binary: %v", err)
	}
	place.binary = binary
	return binary
}

func copyProgram(to string) (err error) {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	// A fork elsewhere in this process may hold the written file for an instant, and then
	// executing it gives ETXTBSY. The fork lock keeps the two apart.
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // other users execute it
	if err != nil {
		return err
	}
	_, err = io.Copy(file, from)
	// The umask may have taken bits that other users need.
	return errors.Join(err, file.Chmod(0o755), file.Close())
}

// Dir returns a new empty folder that the user owns and can reach, removed when the test
// ends.
func Dir(t testing.TB, user User) string {
	t.Helper()
	place.Lock()
	parent, err := openPlace()
	place.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(parent, "dir-") //nolint:usetesting // folders of testing.TB are closed to other users
	if err != nil {
		t.Fatalf("making a folder for a victim: %v", err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("removing a victim's folder: %v", err)
		}
	})
	if user.Switch == ChangeIdentity {
		Own(t, user, dir)
	}
	return dir
}

// Own gives files to the user, so that file permissions are not what refuses an operation.
func Own(t testing.TB, user User, paths ...string) {
	t.Helper()
	if user.Switch == KeepIdentity {
		return
	}
	for _, path := range paths {
		if err := os.Lchown(path, int(user.UID), int(user.GID)); err != nil {
			t.Fatalf("giving %q to user %s: %v", path, user, err)
		}
	}
}
