package supervise

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// words joins parts of a sockaddr: a family in this machine's order, and bytes as they are.
func words(family uint16, rest ...any) []byte {
	raw := binary.NativeEndian.AppendUint16(nil, family)
	for _, part := range rest {
		switch p := part.(type) {
		case uint16: // a port
			raw = binary.BigEndian.AppendUint16(raw, p)
		case uint32: // flow and scope
			raw = binary.NativeEndian.AppendUint32(raw, p)
		case string: // an address
			raw = append(raw, netip.MustParseAddr(p).AsSlice()...)
		case int: // so many zeros
			raw = append(raw, make([]byte, p)...)
		}
	}
	return raw
}

func TestParseDestination(t *testing.T) {
	four := words(unix.AF_INET, uint16(443), "203.0.113.9", 8)
	six := words(unix.AF_INET6, uint16(443), uint32(7), "2001:db8::9", uint32(3))
	for _, test := range []struct {
		name         string
		domain, kind int
		raw          []byte
		want         string // "" for an errno
		scope        uint32
		errno        unix.Errno
	}{
		{name: "IPv4", domain: unix.AF_INET, kind: unix.SOCK_STREAM, raw: four, want: "203.0.113.9:443"},
		{name: "IPv4, longer", domain: unix.AF_INET, kind: unix.SOCK_STREAM, raw: append(bytes.Clone(four), 1, 2, 3), want: "203.0.113.9:443"},
		{name: "IPv4, short", domain: unix.AF_INET, kind: unix.SOCK_STREAM, raw: four[:15], errno: unix.EINVAL},
		{name: "IPv4, any", domain: unix.AF_INET, kind: unix.SOCK_STREAM, raw: words(unix.AF_INET, uint16(9), "0.0.0.0", 8), want: "127.0.0.1:9"},
		{name: "IPv6 on IPv4", domain: unix.AF_INET, kind: unix.SOCK_DGRAM, raw: six, errno: unix.EAFNOSUPPORT},
		{name: "IPv6", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: six, want: "[2001:db8::9]:443"},
		{name: "IPv6 without a scope", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: six[:24], want: "[2001:db8::9]:443"},
		{name: "IPv6, short", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: six[:23], errno: unix.EINVAL},
		{name: "IPv6, link-local", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: words(unix.AF_INET6, uint16(1), uint32(0), "fe80::1", uint32(3)), want: "[fe80::1]:1", scope: 3},
		{name: "IPv6, any", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: words(unix.AF_INET6, uint16(1), uint32(0), "::", uint32(0)), want: "[::1]:1"},
		{name: "IPv6, mapped", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: words(unix.AF_INET6, uint16(1), uint32(0), "::ffff:169.254.169.254", uint32(5)), want: "169.254.169.254:1"},
		{name: "IPv6, mapped any", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: words(unix.AF_INET6, uint16(1), uint32(0), "::ffff:0.0.0.0", uint32(0)), want: "127.0.0.1:1"},
		{name: "IPv4 on IPv6 streams", domain: unix.AF_INET6, kind: unix.SOCK_STREAM, raw: append(bytes.Clone(four), make([]byte, 12)...), errno: unix.EAFNOSUPPORT},
		{name: "IPv4 on IPv6 datagrams", domain: unix.AF_INET6, kind: unix.SOCK_DGRAM, raw: four, want: "203.0.113.9:443"},
		{name: "short IPv4 on IPv6 datagrams", domain: unix.AF_INET6, kind: unix.SOCK_DGRAM, raw: four[:15], errno: unix.EINVAL},
		{name: "a family", domain: unix.AF_INET, kind: unix.SOCK_DGRAM, raw: four[:2], errno: unix.EINVAL},
		{name: "a byte", domain: unix.AF_INET, kind: unix.SOCK_DGRAM, raw: four[:1], errno: unix.EINVAL},
		{name: "nothing", domain: unix.AF_INET6, kind: unix.SOCK_DGRAM, errno: unix.EINVAL},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, errno := parseDestination(test.domain, test.kind, test.raw)
			if errno != test.errno || errno == 0 && (got.at.String() != test.want || got.scope != test.scope) {
				t.Errorf("got %v scope %d, %v; want %s scope %d, %v", got.at, got.scope, errno, test.want, test.scope, test.errno)
			}
		})
	}
}

// FuzzDestination: what goes to the kernel reads as what was decided on.
func FuzzDestination(f *testing.F) {
	f.Add(true, true, words(unix.AF_INET6, uint16(1), uint32(0), "::ffff:10.0.0.1", uint32(5)))
	f.Add(false, false, words(unix.AF_INET, uint16(443), "203.0.113.9", 8))
	f.Fuzz(func(t *testing.T, isSix, isStream bool, raw []byte) {
		domain, kind := unix.AF_INET, unix.SOCK_DGRAM
		if isSix {
			domain = unix.AF_INET6
		}
		if isStream {
			kind = unix.SOCK_STREAM
		}
		first, errno := parseDestination(domain, kind, raw)
		if errno != 0 {
			return
		}
		if addr := first.at.Addr(); addr.Is4In6() || addr.IsUnspecified() || addr.Zone() != "" {
			t.Errorf("%v is not the plain address", addr)
		}
		second, errno := parseDestination(domain, kind, first.sockaddr(domain))
		if errno != 0 || second != first {
			t.Errorf("%v reads as %v, %v", first, second, errno)
		}
	})
}

func TestParseUnix(t *testing.T) {
	for _, test := range []struct {
		name  string
		raw   string
		want  unixName
		errno unix.Errno
	}{
		{name: "path", raw: "\x01\x00/run/s\x00", want: unixName{path: "/run/s"}},
		{name: "path without an end", raw: "\x01\x00/run/s", want: unixName{path: "/run/s"}},
		{name: "path with more behind its end", raw: "\x01\x00/run/s\x00/../x", want: unixName{path: "/run/s"}},
		{name: "longest path", raw: "\x01\x00" + strings.Repeat("p", 108), want: unixName{path: strings.Repeat("p", 108)}},
		{name: "too long", raw: "\x01\x00" + strings.Repeat("p", 109), errno: unix.EINVAL},
		{name: "abstract", raw: "\x01\x00\x00name\x00x", want: unixName{path: "name\x00x", abstract: true}},
		{name: "abstract and empty", raw: "\x01\x00\x00", want: unixName{abstract: true}},
		{name: "unnamed", raw: "\x01\x00", errno: unix.EINVAL},
		{name: "a byte", raw: "\x01", errno: unix.EINVAL},
		{name: "another family", raw: "\x02\x00/run/s", errno: unix.EINVAL},
		{name: "nothing", errno: unix.EINVAL},
	} {
		t.Run(test.name, func(t *testing.T) {
			raw := []byte(test.raw)
			if len(raw) >= 2 {
				binary.NativeEndian.PutUint16(raw, uint16(raw[0]))
			}
			got, errno := parseUnix(raw)
			if errno != test.errno || got != test.want {
				t.Errorf("got %+v, %v; want %+v, %v", got, errno, test.want, test.errno)
			}
		})
	}
	if got := (unixName{path: "a\x00b", abstract: true}).String(); got != "@a@b" {
		t.Errorf("an abstract name reads %q", got)
	}
}

func TestUnixHolds(t *testing.T) {
	u := Unix{Sockets: []string{"/run/granted"}, Own: []string{"/own"}}
	for path, want := range map[string]bool{
		"/run/granted": true, "/run/granted (deleted)": false, "/run/other": false, "/run": false,
		"/own/s": true, "/own/deep/s": true, "/own": false, "/own/": false, "/ownother/s": false,
		"(unreachable)/own/s": false, "": false,
	} {
		if got := u.holds(path); got != want {
			t.Errorf("%q is held: %t, want %t", path, got, want)
		}
	}
	if (Unix{Own: []string{""}}).holds("/anything") {
		t.Error("an empty folder holds everything")
	}
}

func TestMessageRest(t *testing.T) {
	m := &message{}
	m.add(1000, 10)
	m.add(2000, 0)
	m.add(3000, 5)
	for _, test := range []struct {
		sent, most int
		want       []unix.RemoteIovec
	}{
		{0, 100, []unix.RemoteIovec{{Base: 1000, Len: 10}, {Base: 3000, Len: 5}}},
		{0, 4, []unix.RemoteIovec{{Base: 1000, Len: 4}}},
		{4, 8, []unix.RemoteIovec{{Base: 1004, Len: 6}, {Base: 3000, Len: 2}}},
		{10, 100, []unix.RemoteIovec{{Base: 3000, Len: 5}}},
		{12, 100, []unix.RemoteIovec{{Base: 3002, Len: 3}}},
		{15, 100, nil},
	} {
		m.sent = test.sent
		got, length := m.rest(test.most)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("after %d bytes, at most %d: %s", test.sent, test.most, diff)
		}
		sum := 0
		for _, v := range got {
			sum += v.Len
		}
		if length != sum {
			t.Errorf("after %d bytes, at most %d: %d bytes, want %d", test.sent, test.most, length, sum)
		}
	}
}
