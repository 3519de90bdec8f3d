package verify

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/seccomp"
)

func networkChecks(p sandbox.Plan, m Machine) []Check {
	out := []Check{
		filterCheck("make a packet socket", OpSocket, unix.AF_PACKET, "EAFNOSUPPORT"),
		filterCheck("make a vsock socket", OpSocket, unix.AF_VSOCK, "EAFNOSUPPORT"),
	}
	if p.Mediated() {
		out = append(out, supervisedChecks(p, m)...)
	} else {
		out = append(out, filterCheck("make a Unix socket", OpSocket, unix.AF_UNIX, "EACCES"))
		out = append(out, socketChecks(p)...)
	}
	for _, port := range p.Network.Listen {
		out = append(out, filterCheck(fmt.Sprintf("listen on port %d", port), OpListen, int(port), ""))
	}
	if n := len(p.Network.Listen); n > 0 && !slices.Contains(p.Missing, sandbox.LayerTCP) {
		out = append(out, Check{Layer: sandbox.LayerTCP, Name: "bind another port", Op: OpBind, Num: otherPort(p.Network.Listen), Want: "EACCES"})
	}
	return out
}

func filterCheck(name string, op Op, num int, want string) Check {
	return Check{Layer: sandbox.LayerSeccomp, Name: name, Op: op, Num: num, Want: want}
}

// socketChecks are for plans whose sockets the filter alone decides on.
func socketChecks(p sandbox.Plan) []Check {
	var out []Check
	switch p.Filter.Sockets {
	case seccomp.NoSockets:
		out = noInternet()
	case seccomp.ListenSockets:
		out = append(out,
			filterCheck("make an IPv4 socket", OpSocket, unix.AF_INET, ""),
			filterCheck("connect", OpConnect, 9, "EACCES"))
	case seccomp.InternetSockets:
		out = append(out, filterCheck("make an IPv4 socket", OpSocket, unix.AF_INET, ""))
	}
	if p.Filter.Sockets != seccomp.NoSockets && p.Filter.Listening == seccomp.ListenRefused {
		out = append(out, filterCheck("listen", OpListenAnywhere, 0, "EACCES"))
	}
	return out
}

func noInternet() []Check {
	return []Check{
		filterCheck("make an IPv4 socket", OpSocket, unix.AF_INET, "EAFNOSUPPORT"),
		filterCheck("make an IPv6 socket", OpSocket, unix.AF_INET6, "EAFNOSUPPORT"),
	}
}

// supervisedChecks are for plans whose connections a supervisor decides on. What is refused
// is aimed at loopback, where nothing of it would leave the machine.
func supervisedChecks(p sandbox.Plan, m Machine) []Check {
	var out []Check
	check := func(name string, op Op, path, want string) {
		out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: name, Op: op, Path: path, Want: want})
	}
	if p.Tmp.Path != "" {
		check("connect to a Unix socket of its own", OpOwnUnix, filepath.Join(p.Tmp.Path, "verify.sock"), "")
	}
	if m.Socket != "" {
		out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "connect to an outside Unix socket", Op: OpConnectUnix, Path: m.Socket, Want: "EACCES", Outside: WorksOutside})
	}
	check("connect to an abstract Unix socket", OpAbstractUnix, "", "EACCES")
	switch {
	case p.Filter.Supervision == seccomp.SupervisedInternet:
		out = append(out, filterCheck("make an IPv4 socket", OpSocket, unix.AF_INET, ""))
		out = append(out, internetChecks(p.Network, m.IPv6)...)
	case p.Filter.Sockets == seccomp.ListenSockets:
		out = append(out, filterCheck("make an IPv4 socket", OpSocket, unix.AF_INET, ""))
		check("connect", OpConnectTo, "127.0.0.1:9", "EACCES")
	default:
		return append(out, noInternet()...)
	}
	if len(p.Network.Listen) == 0 {
		out = append(out, filterCheck("listen", OpListenAnywhere, 0, "EACCES"))
	}
	return out
}

// internetChecks aim at addresses that the plan's own rules refuse, and at the stub, which
// answers in place of every name server.
func internetChecks(n sandbox.Network, six IPv6) []Check {
	var out []Check
	decider := egress.NewDecider(n.Rules, nil)
	for _, to := range [...]struct{ kind, address string }{
		{"IPv4", "127.83.84.75:9"}, {"IPv4", "127.0.0.1:1"}, {"IPv6", "[::1]:9"}, {"IPv4-mapped", "[::ffff:127.83.84.75]:9"},
	} {
		addr := netip.MustParseAddrPort(to.address)
		if addr.Addr().Is6() && six != IPv6Present {
			continue
		}
		if decider.Stream(addr).Verdict == egress.Refused {
			out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "connect to the " + to.kind + " address " + to.address + ", which no rule names", Op: OpConnectTo, Path: to.address, Want: "EACCES"})
		}
		if decider.Datagram(addr).Verdict == egress.Refused {
			out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "send a datagram to the " + to.kind + " address " + to.address + ", which no rule names", Op: OpSendTo, Path: to.address, Want: "EACCES"})
		}
	}
	out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "connect while sending (MSG_FASTOPEN)", Op: OpFastOpen, Path: "127.83.84.75:9", Want: "EACCES"})
	server, name := "127.83.84.75:53", "name.stockade-verify.invalid"
	if decider.Datagram(netip.MustParseAddrPort(server)).Verdict == egress.Resolver && decider.Query(name).Verdict == egress.Refused {
		// Nobody but the stub answers at this address.
		out = append(out, Check{Layer: sandbox.LayerSeccomp, Name: "look up a name that no rule allows", Op: OpLookUp, Path: server, Names: []string{name}, Want: "NXDOMAIN"})
	}
	return out
}

// otherPort picks a port that is not granted.
func otherPort(granted []uint16) int {
	port := uint16(49151)
	for slices.Contains(granted, port) {
		port--
	}
	return int(port)
}
