package seccomp_test

import (
	"fmt"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"stockade/sandbox/jailtest"
	"stockade/seccomp"
)

// supervisedCase is one operation under a supervisor and outside a jail.
type supervisedCase struct {
	name   string
	policy seccomp.Policy
	given  func(*testing.T) *os.File // descriptor 3; nil for none
	args   []string                  // the operation and its arguments
	// waits is the call that the supervisor is asked about; "" for none.
	waits  string
	inJail func(*testing.T, jailtest.Result) // nil: the supervisor's answer
	free   func(*testing.T, jailtest.Result) // nil: it works
}

func (c supervisedCase) run(t *testing.T, user jailtest.User) {
	t.Helper()
	given := func() *os.File {
		if c.given == nil {
			return nil
		}
		return c.given(t)
	}
	result, calls := supervision{policy: c.policy, given: given()}.run(t, user, c.args[0], c.args[1:]...)
	inJail := c.inJail
	if inJail == nil {
		inJail = refused(answered)
	}
	inJail(t, result)
	if got := names(t, calls); got != c.waits {
		t.Errorf("the supervisor was asked about %q, want %q", got, c.waits)
	}
	free := c.free
	if free == nil {
		free = works
	}
	var files []*os.File
	if file := given(); file != nil {
		files = []*os.File{file}
	}
	free(t, operateWith(t, user, files, outside, c.args[0], c.args[1:]...))
}

func runSupervisedCases(t *testing.T, cases []supervisedCase) {
	t.Helper()
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, user) })
		}
	})
}

func tcpSocket(t *testing.T) *os.File { t.Helper(); return inherited(t, unix.SOCK_STREAM) }
func udpSocket(t *testing.T) *os.File { t.Helper(); return inherited(t, unix.SOCK_DGRAM) }

func TestKernelSupervisedSockets(t *testing.T) {
	needFastOpen(t)
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := fmt.Sprint(listener.Addr().(*net.TCPAddr).Port)
	datagrams, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()
	udpPort := fmt.Sprint(datagrams.LocalAddr().(*net.UDPAddr).Port)
	use := func(way, port string) []string { return []string{"socket", way, port} }

	runSupervisedCases(t, []supervisedCase{
		{name: "connect", policy: supervised, given: tcpSocket, args: use("connect", port), waits: "connect"},
		{name: "connect with Unix sockets only", policy: supervisedUnix, given: tcpSocket, args: use("connect", port), waits: "connect"},
		{name: "listen", policy: supervised, given: tcpSocket, args: use("listen", "0"), waits: "listen"},
		{name: "bind", policy: supervisedUnix, given: tcpSocket, args: use("bind", "0"), waits: "bind"},
		{name: "accept", policy: supervised, given: tcpSocket, args: use("accept", "0"), inJail: refused(unix.EAGAIN), free: refused(unix.EAGAIN)},
		{name: "accept4", policy: supervised, given: tcpSocket, args: use("accept4", "0"), inJail: refused(unix.EAGAIN), free: refused(unix.EAGAIN)},
		{name: "datagram to an address", policy: supervised, given: udpSocket, args: use("sendto", udpPort), waits: "sendto"},
		{name: "message", policy: supervised, given: udpSocket, args: use("sendmsg", udpPort), waits: "sendmsg"},
		{name: "messages", policy: supervised, given: udpSocket, args: use("sendmmsg", udpPort), waits: "sendmmsg"},
		{name: "message with Unix sockets only", policy: supervisedUnix, given: udpSocket, args: use("sendmsg", udpPort), waits: "sendmsg"},
		{name: "fast open", policy: supervised, given: tcpSocket, args: use("sendto fast open", port), inJail: refused(unix.EACCES)},
		{name: "fast open in a message", policy: supervised, given: tcpSocket, args: use("sendmsg fast open", port), inJail: refused(unix.EACCES)},
		{name: "fast open in messages", policy: supervised, given: tcpSocket, args: use("sendmmsg fast open", port), inJail: refused(unix.EACCES)},
		{name: "option to connect later", policy: supervised, given: tcpSocket, args: use("fast open option", "0"), inJail: refused(unix.EACCES)},
		{name: "no delay", policy: supervised, given: tcpSocket, args: use("no delay option", "0"), inJail: works},
		// An end of a pair without an address goes where it is connected to; with one it waits.
		{name: "send on a pair", policy: supervisedUnix, args: []string{"aim", hex(unix.SOCK_STREAM), "send", "/"}, inJail: works},
		{
			name: "message on a pair", policy: supervisedUnix, args: []string{"aim", hex(unix.SOCK_SEQPACKET), "sendmsg", "/"},
			waits: "sendmsg",
		},
		{
			name: "send on a pair to an address", policy: supervisedUnix, args: []string{"aim", hex(unix.SOCK_SEQPACKET), "sendto", "/"},
			waits: "sendto",
		},
	})
}

func TestKernelSupervisedCreation(t *testing.T) {
	socket := func(family, kind, protocol uint64) []string {
		return []string{"raw", nr(t, "socket"), hex(family), hex(kind | unix.SOCK_CLOEXEC), hex(protocol)}
	}
	cases := []supervisedCase{
		{name: "datagram pair", policy: supervised, args: []string{"pair", hex(unix.SOCK_DGRAM)}, inJail: refused(unix.EPERM)},
		{name: "stream pair", policy: supervised, args: []string{"pair", hex(unix.SOCK_STREAM)}, inJail: works},
		{name: "TCP with Unix only", policy: supervisedUnix, args: socket(unix.AF_INET, unix.SOCK_STREAM, 0), inJail: refused(unix.EAFNOSUPPORT)},
		{name: "UDP with Unix only", policy: supervisedUnix, args: socket(unix.AF_INET, unix.SOCK_DGRAM, 0), inJail: refused(unix.EAFNOSUPPORT)},
		{name: "TCP for a server", policy: supervisedServer, args: socket(unix.AF_INET, unix.SOCK_STREAM, 0), inJail: works},
		{name: "UDP for a server", policy: supervisedServer, args: socket(unix.AF_INET, unix.SOCK_DGRAM, 0), inJail: refused(unix.EPERM)},
		{name: "netlink with Unix only", policy: supervisedUnix, args: socket(unix.AF_NETLINK, unix.SOCK_RAW, 0), inJail: refused(unix.EAFNOSUPPORT)},
		{name: "TCP", policy: supervised, args: socket(unix.AF_INET, unix.SOCK_STREAM, 0), inJail: works},
		{name: "UDP", policy: supervised, args: socket(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_UDP), inJail: works},
		{name: "netlink", policy: supervised, args: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE), inJail: works},
		{
			name: "other netlink", policy: supervised, args: socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
			inJail: refused(unix.EPERM),
		},
		{
			name: "Multipath TCP", policy: supervised, args: socket(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP),
			inJail: refused(unix.EPROTONOSUPPORT), free: worksOrLacksProtocol,
		},
		{name: "Unix, raw is datagram", policy: supervised, args: socket(unix.AF_UNIX, unix.SOCK_RAW, 0), inJail: refused(unix.EPERM)},
	}
	for _, policy := range []seccomp.Policy{supervisedUnix, supervised} {
		for _, kind := range []uint64{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			cases = append(cases, supervisedCase{
				name: fmt.Sprintf("Unix %d under supervision %d", kind, policy.Supervision), policy: policy,
				args: socket(unix.AF_UNIX, kind, 0), inJail: works,
			})
		}
	}
	runSupervisedCases(t, cases)
}

// Values of options. A filter does not see them, so where the kernel asks ordinary users for
// a capability (a source route of IPv4, on 6.18) or has no such route built in (among packed
// options), the value is a harmless one: it shows that the call is refused for its option.
const (
	noOptions4 = "01010101" // IPOPT_NOOP
	// segments6 is struct ipv6_sr_hdr with one segment.
	segments6 = "0002040000000000" + loopback6
	loopback6 = "00000000000000000000000000000001"
	// packed6 is struct cmsghdr with a hop limit.
	packed6 = "14000000000000002900000034000000" + "4000000000000000"
	// label6 is struct in6_flowlabel_req that makes a label for one owner.
	label6 = loopback6 + "00000000" + "00" + "01" + "0100" + "00000000" + "00000000"
)

func TestKernelSourceRoutes(t *testing.T) {
	jailtest.Need(t, jailtest.Probe{Name: "IPv6", Check: func() error {
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}})
	udp6 := func(t *testing.T) *os.File {
		t.Helper()
		fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		file := os.NewFile(uintptr(fd), "socket")
		t.Cleanup(func() { file.Close() })
		return file
	}
	option := func(level, option int, value string) []string {
		return []string{"option", fmt.Sprint(level), fmt.Sprint(option), value}
	}
	refusal := refused(unix.EPERM)
	runSupervisedCases(t, []supervisedCase{
		{name: "IPv4, stream", policy: supervised, given: tcpSocket, args: option(unix.SOL_IP, unix.IP_OPTIONS, noOptions4), inJail: refusal},
		{name: "IPv4, datagram", policy: supervised, given: udpSocket, args: option(unix.SOL_IP, unix.IP_OPTIONS, noOptions4), inJail: refusal},
		{name: "IPv4, hops", policy: supervised, given: udpSocket, args: option(unix.SOL_IP, unix.IP_TTL, "40000000"), inJail: works},
		{name: "IPv6", policy: supervised, given: udp6, args: option(unix.SOL_IPV6, unix.IPV6_RTHDR, segments6), inJail: refusal},
		{name: "IPv6, packed", policy: supervised, given: udp6, args: option(unix.SOL_IPV6, unix.IPV6_2292PKTOPTIONS, packed6), inJail: refusal},
		{name: "IPv6, flow label", policy: supervised, given: udp6, args: option(unix.SOL_IPV6, 32, label6), inJail: refusal},
		{name: "IPv6 only", policy: supervised, given: udp6, args: option(unix.SOL_IPV6, unix.IPV6_V6ONLY, "01000000"), inJail: works},
	})
}

// TestKernelSecondListener: nobody in the jail takes the supervisor's place after its end.
func TestKernelSecondListener(t *testing.T) {
	address := []string{nr(t, "connect"), "0", hex(bad), "16"}
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		run := func(victim, operation string, leaves bool, args ...string) jailtest.Result {
			t.Helper()
			result, _ := supervision{victim: victim, policy: supervised, leaves: leaves}.run(t, user, operation, args...)
			return result
		}
		for _, leaves := range []bool{false, true} {
			refused(unix.EBUSY)(t, run("supervised", "own filter", leaves, "listener"))
			works(t, run("supervised", "own filter", leaves, "no listener"))
		}
		// The kernel's own answers: it refuses while there is a supervisor, and not after.
		refused(unix.EBUSY)(t, run("plain supervised", "own filter", false, "listener"))
		works(t, run("plain supervised", "own filter", true, "listener"))
		// What waits for a supervisor that has gone fails.
		refused(unix.ENOSYS)(t, run("supervised", "raw", true, address...))
		refused(answered)(t, run("supervised", "raw", false, address...))
	})
}

// TestKernelSignalsDoNotRestartCalls: a call that the supervisor has taken up is answered
// once, though a signal comes before the answer.
func TestKernelSignalsDoNotRestartCalls(t *testing.T) {
	jailtest.EachUser(t, func(t *testing.T, user jailtest.User) {
		during := func(s *supervisor, n notification) error {
			// The Go runtime has a handler for it, so it would interrupt the call.
			if err := unix.Tgkill(s.pid, int(n.pid), unix.SIGURG); err != nil {
				return fmt.Errorf("sending a signal: %w", err)
			}
			for range 50_000 { // each looks whether the call was interrupted
				if err := s.valid(n.id); err != nil {
					return fmt.Errorf("the signal interrupted the call: %w", err)
				}
			}
			return nil
		}
		result, calls := supervision{policy: supervised, during: during}.run(t, user, "raw", nr(t, "listen"), "0", "1")
		refused(answered)(t, result)
		if got := names(t, calls); got != "listen" {
			t.Errorf("the supervisor was asked about %q, want one listen", got)
		}
	})
}
