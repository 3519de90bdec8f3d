package supervise_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// binding is a socket and the address to bind it to, as it lies in memory.
type binding struct {
	Domain, Kind, Protocol int
	Address                []byte
}

var bindVictims = jailtest.Victims{
	// binds: a binding as JSON, a folder to work in. The umask leaves everything to everybody.
	"binds": func(s *jailtest.Stage, args []string) jailtest.Outcome {
		var b binding
		if err := json.Unmarshal([]byte(args[0]), &b); err != nil {
			s.Failf("reading the binding: %v", err)
		}
		if err := os.Chdir(args[1]); err != nil {
			s.Failf("%v", err)
		}
		unix.Umask(0)
		fd, err := unix.Socket(b.Domain, b.Kind|unix.SOCK_CLOEXEC, b.Protocol)
		if err != nil {
			s.Failf("making a socket: %v", err)
		}
		s.Begin()
		_, _, errno := unix.Syscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(&b.Address[0])), uintptr(len(b.Address)))
		return jailtest.Outcome{Errno: errno}
	},
}

func wire4(port uint16, address ...byte) []byte {
	return append(append([]byte{unix.AF_INET, 0, byte(port >> 8), byte(port)}, address...), make([]byte, 8)...)
}

func wire6(port uint16, last byte) []byte {
	raw := make([]byte, 28)
	raw[0], raw[2], raw[3], raw[23] = unix.AF_INET6, byte(port>>8), byte(port), last
	return raw
}

// quietPort finds a port that nobody listens on, and its neighbour neither. It lies below
// those that the kernel picks, so nobody gets it by chance (net.ipv4.ip_local_port_range).
func quietPort(t *testing.T) uint16 {
	t.Helper()
	for port := 20000 + os.Getpid()%9000; port < 32000; port += 2 {
		if free(port) && free(port+1) {
			return uint16(port) //nolint:gosec // below 32000
		}
	}
	t.Fatal("no port is free")
	return 0
}

func free(port int) bool {
	l, err := net.Listen("tcp", ":"+strconv.Itoa(port)) //nolint:noctx // it ends at once
	return err == nil && l.Close() == nil
}

func netlinkWire(groups byte) []byte {
	return []byte{unix.AF_NETLINK, 0, 0, 0, 0, 0, 0, 0, groups, 0, 0, 0}
}

func TestBind(t *testing.T) {
	granted := quietPort(t)
	other := granted + 1
	internet := world{Supervision: seccomp.SupervisedInternet, Egress: []string{}, Listen: []uint16{granted}}
	tcp, udp := func(raw []byte) binding { return binding{unix.AF_INET, unix.SOCK_STREAM, 0, raw} },
		func(raw []byte) binding { return binding{unix.AF_INET, unix.SOCK_DGRAM, 0, raw} }
	tests := []struct {
		name    string
		binding binding
		denied  string
	}{
		{"granted port", tcp(wire4(granted, 127, 0, 0, 1)), ""},
		{"port that the kernel picks", tcp(wire4(0, 127, 0, 0, 1)), ""},
		{"other port", tcp(wire4(other, 127, 0, 0, 1)), fmt.Sprintf("tcp 127.0.0.1:%d", other)},
		{"other port on every address", tcp(wire4(other, 0, 0, 0, 0)), fmt.Sprintf("tcp 0.0.0.0:%d", other)},
		{"IPv6, granted port", binding{unix.AF_INET6, unix.SOCK_STREAM, 0, wire6(granted, 1)}, ""},
		{"IPv6, other port", binding{unix.AF_INET6, unix.SOCK_STREAM, 0, wire6(other, 1)}, fmt.Sprintf("tcp [::1]:%d", other)},
		{"datagrams, a port that the kernel picks", udp(wire4(0, 0, 0, 0, 0)), ""},
		{"datagrams, a port for streams", udp(wire4(granted, 127, 0, 0, 1)), fmt.Sprintf("udp 127.0.0.1:%d", granted)},
		{"datagrams, other port", udp(wire4(other, 0, 0, 0, 0)), fmt.Sprintf("udp 0.0.0.0:%d", other)},
		{"IPv6 datagrams, other port", binding{unix.AF_INET6, unix.SOCK_DGRAM, 0, wire6(other, 0)}, fmt.Sprintf("udp [::]:%d", other)},
		{"netlink", binding{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, netlinkWire(0)}, ""},
		{"netlink group", binding{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, netlinkWire(1)}, "groups of netlink"},
	}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) { tryBinding(t, internet, user, tt.binding, "/", tt.denied) })
		}
	})
}

// tryBinding binds in the jail and outside. Outside it always works.
func tryBinding(t *testing.T, w world, user jailtest.User, b binding, dir, denied string) {
	t.Helper()
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	r := w.run(t, user, "binds", string(text), dir)
	if denied == "" {
		jailtest.WantOK(t, r)
		wantNoDenial(t, r)
		return
	}
	jailtest.WantErrno(t, r, unix.EACCES)
	wantDenied(t, r, "bind", denied)
	jailtest.WantOK(t, jailtest.RunAs(t, user, "binds", string(text), dir))
}

func TestBindUnix(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		own, other := jailtest.Dir(t, user), jailtest.Dir(t, user)
		inside := filepath.Join(own, "below")
		if err := os.Mkdir(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		jailtest.Own(t, user, inside)
		abstract := "stockade-bind-" + strconv.Itoa(os.Getpid()) + user.String()
		w := world{Supervision: seccomp.SupervisedUnix, Own: []string{own}}
		tests := []struct {
			name   string
			raw    []byte
			dir    string
			denied string
		}{
			{"absolute", unixWire(own + "/absolute"), "/", ""},
			{"relative", unixWire("relative"), own, ""},
			{"below", unixWire(inside + "/socket"), "/", ""},
			{"by way of a parent", unixWire("../" + filepath.Base(own) + "/parent"), inside + "/..", ""},
			{"another folder", unixWire(other + "/absolute"), "/", other + "/absolute"},
			{"another folder, relative", unixWire("relative"), other, other + "/relative"},
			{"through a link", unixWire(link(t, other, own+"/out") + "/linked"), "/", other + "/linked"},
			{"abstract", unixWire("@" + abstract), "/", "@" + abstract},
		}
		for _, tt := range tests {
			for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
				t.Run(tt.name+" "+strconv.Itoa(kind), func(t *testing.T) {
					denied := tt.denied
					if denied != "" && denied[0] == '/' {
						denied = "unix " + denied
					}
					tryBinding(t, w, user, binding{unix.AF_UNIX, kind, 0, tt.raw}, tt.dir, denied)
					if tt.raw[2] == 0 {
						return
					}
					path := string(tt.raw[2 : len(tt.raw)-1])
					if path[0] != '/' {
						path = tt.dir + "/" + path
					}
					st, err := os.Lstat(path)
					if err != nil || st.Mode().Type() != os.ModeSocket {
						t.Fatalf("%v, %v", st, err)
					}
					// In the jail the supervisor's mask counts, and it keeps to its user.
					if tt.denied == "" && st.Mode().Perm()&0o077 != 0 {
						t.Errorf("mode %v", st.Mode())
					}
					if err := os.Remove(path); err != nil {
						t.Error(err)
					}
				})
			}
		}
		tryBinding(t, w, user, binding{unix.AF_UNIX, unix.SOCK_STREAM, 0, []byte{unix.AF_UNIX, 0}}, "/", "an abstract name that the kernel picks")
	})
}
