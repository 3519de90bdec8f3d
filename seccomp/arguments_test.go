package seccomp_test

import (
	"slices"
	"testing"

	"stockade/seccomp"
)

const (
	high = 1 << 32 // a bit that the kernel does not look at in an int argument

	newNamespaces = 0x7e020000 // all CLONE_NEW* of clone(2)
	oTrunc        = 0x200
	fastOpen      = 0x20000000
	unix_, inet   = 1, 2
	inet6         = 10
	netlink       = 16
	stream        = 1
	datagram      = 2
	raw           = 3
	seqpacket     = 5
	cloexec       = 0x80000
	nonblock      = 0x800
)

var (
	strict   = seccomp.Policy{}
	server   = seccomp.Policy{Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed}
	client   = seccomp.Policy{Sockets: seccomp.InternetSockets}
	internet = seccomp.Policy{Sockets: seccomp.InternetSockets, Listening: seccomp.ListenAllowed}
	refusing = seccomp.Policy{Metadata: seccomp.MetadataRefuse}
	older    = seccomp.Policy{Truncation: seccomp.TruncationByFilter}

	supervisedUnix   = seccomp.Policy{Supervision: seccomp.SupervisedUnix}
	supervisedServer = seccomp.Policy{Supervision: seccomp.SupervisedUnix, Sockets: seccomp.ListenSockets}
	supervised       = seccomp.Policy{Supervision: seccomp.SupervisedInternet}
)

// argumentCase is one call with arguments under one policy.
type argumentCase struct {
	name   string
	policy seccomp.Policy
	call   string
	args   []uint64
	want   string
}

func (c argumentCase) check(t *testing.T) {
	for _, arch := range bothArchitectures {
		if got := newJail(t, c.policy, arch).ask(c.call, c.args...); got != c.want && got != "" {
			t.Errorf("%s: %s(%#x) gives %s, want %s", arch, c.call, c.args, got, c.want)
		}
	}
}

func runArguments(t *testing.T, cases []argumentCase) {
	for _, c := range cases {
		t.Run(c.call+" "+c.name, c.check)
	}
}

func TestProcessArguments(t *testing.T) {
	cases := []argumentCase{
		{"thread", strict, "clone", []uint64{0x3d0f00}, allowed},
		{"fork", strict, "clone", []uint64{17}, allowed},
		{"personality query", strict, "personality", []uint64{0xffffffff}, allowed},
		{"query with high bits", strict, "personality", []uint64{^uint64(0)}, allowed},
		{"linux", strict, "personality", []uint64{0}, allowed},
		{"no randomisation", strict, "personality", []uint64{0x40000}, "EPERM"},
		{"32 bits", strict, "personality", []uint64{8}, "EPERM"},
		{"read implies exec", strict, "personality", []uint64{0x400000}, "EPERM"},
		{"high bits over a persona", strict, "personality", []uint64{high | 8}, "EPERM"},
		{"sealed against execution", strict, "memfd_create", []uint64{1, 0x8}, allowed},
		{"sealed, close on exec", strict, "memfd_create", []uint64{1, 0xb}, allowed},
		{"plain", strict, "memfd_create", []uint64{1, 0x1}, "ENOSYS"},
		{"executable", strict, "memfd_create", []uint64{1, 0x10}, "ENOSYS"},
		{"high bits", strict, "memfd_create", []uint64{1, 0x8 << 32}, "ENOSYS"},
		{"by path", strict, "execveat", []uint64{3, 1, 1, 1, 0}, allowed},
		{"no links", strict, "execveat", []uint64{3, 1, 1, 1, 0x100}, allowed},
		{"by descriptor", strict, "execveat", []uint64{3, 1, 1, 1, 0x1000}, "EPERM"},
		{"by descriptor with more", strict, "execveat", []uint64{3, 1, 1, 1, high | 0x1100}, "EPERM"},
		{"another process", strict, "setpriority", []uint64{0, 1}, "EPERM"},
		{"itself", strict, "setpriority", []uint64{0, 0, 5}, allowed},
		{"itself with high bits", strict, "setpriority", []uint64{high, high, 5}, allowed},
		{"group", strict, "setpriority", []uint64{1, 0}, "EPERM"},
		{"user", strict, "setpriority", []uint64{2, 0}, "EPERM"},
		{"itself", strict, "ioprio_set", []uint64{1, 0}, allowed},
		{"another process", strict, "ioprio_set", []uint64{1, 2}, "EPERM"},
		{"group", strict, "ioprio_set", []uint64{2, 0}, "EPERM"},
		{"user", strict, "ioprio_set", []uint64{3, 0}, "EPERM"},
		{"another process may be asked about", strict, "getpriority", []uint64{0, 1}, allowed},
		{"another process may be asked about", strict, "sched_getaffinity", []uint64{1}, allowed},
	}
	for _, name := range []string{"prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler"} {
		cases = append(cases,
			argumentCase{"itself", strict, name, []uint64{0, 7, 1}, allowed},
			argumentCase{"itself with high bits", strict, name, []uint64{high, 7, 1}, allowed},
			argumentCase{"another process", strict, name, []uint64{1, 7, 1}, "EPERM"},
			argumentCase{"another process with high bits", strict, name, []uint64{high | 4242, 7, 1}, "EPERM"})
	}
	for bit := range 64 {
		flag := uint64(1) << bit
		want := allowed
		if flag&newNamespaces != 0 {
			want = "EPERM"
		}
		cases = append(cases, argumentCase{"one bit", strict, "clone", []uint64{flag}, want})
	}
	runArguments(t, cases)
}

func TestTerminalArguments(t *testing.T) {
	refused := map[uint64]bool{0x540e: true, 0x5412: true, 0x541c: true, 0x5423: true}
	j := map[string]jail{}
	for _, arch := range bothArchitectures {
		j[arch] = newJail(t, strict, arch)
	}
	ask := func(request uint64) {
		want := allowed
		if refused[request&0xffffffff] {
			want = "EPERM"
		}
		for arch := range j {
			if got := j[arch].ask("ioctl", 0, request, 1); got != want {
				t.Errorf("%s: ioctl %#x gives %s, want %s", arch, request, got, want)
			}
		}
	}
	for request := range uint64(0x10000) {
		ask(request)
	}
	// Each refused request with one other bit: bits of the word make another request, bits
	// above it are not looked at by the kernel.
	for request := range refused {
		for bit := range 64 {
			ask(request ^ 1<<bit)
		}
		ask(request | 0xffffffff<<32)
	}
	// musl passes requests with the top bit as negative numbers.
	ask(0xffffffff80045430)
	ask(0xffffffffffffffff)
}

func TestSocketArguments(t *testing.T) {
	cases := []argumentCase{
		{"pair, stream", strict, "socketpair", []uint64{unix_, stream | cloexec | nonblock, 0}, allowed},
		{"pair, seqpacket", strict, "socketpair", []uint64{unix_, seqpacket, 0}, allowed},
		{"pair, named protocol", strict, "socketpair", []uint64{unix_, stream, 1}, allowed},
		{"pair, high bits", strict, "socketpair", []uint64{high | unix_, high | stream, high}, allowed},
		{"pair, datagram", strict, "socketpair", []uint64{unix_, datagram | cloexec, 0}, "EPERM"},
		{"pair, datagram with high bits", strict, "socketpair", []uint64{unix_, high | datagram, 0}, "EPERM"},
		{"pair, raw becomes datagram", strict, "socketpair", []uint64{unix_, raw, 0}, "EPERM"},
		{"pair, other family", strict, "socketpair", []uint64{30, stream, 0}, "EPERM"},
		{"pair, other protocol", strict, "socketpair", []uint64{unix_, stream, 2}, "EPERM"},
		{"connect", strict, "connect", []uint64{3, 1, 16}, "EACCES"},
		{"bind", strict, "bind", []uint64{3, 1, 16}, "EACCES"},
		{"listen", strict, "listen", []uint64{3}, "EACCES"},
		{"accept", strict, "accept", []uint64{3}, "EACCES"},
		{"accept4", strict, "accept4", []uint64{3}, "EACCES"},
		{"no address", strict, "sendto", []uint64{3, 1, 1, 0x4000, 0, 0}, allowed},
		{"address", strict, "sendto", []uint64{3, 1, 1, 0, 1, 16}, "EACCES"},
		{"address in the high half", strict, "sendto", []uint64{3, 1, 1, 0, high, 16}, "EACCES"},
		{"fast open", strict, "sendto", []uint64{3, 1, 1, fastOpen, 0, 0}, "EACCES"},
		{"fast open with address", strict, "sendto", []uint64{3, 1, 1, fastOpen | 0x4000, 1, 16}, "EACCES"},
		{"fast open", strict, "sendmsg", []uint64{3, 1, high | fastOpen}, "EACCES"},
		{"plain", strict, "sendmsg", []uint64{3, 1, 0x4000}, allowed},
		{"fast open", strict, "sendmmsg", []uint64{3, 1, 1, fastOpen}, "EACCES"},
		{"plain", strict, "sendmmsg", []uint64{3, 1, fastOpen, 0}, allowed},

		{"connect", server, "connect", []uint64{3, 1, 16}, "EACCES"},
		{"bind", server, "bind", []uint64{3, 1, 16}, allowed},
		{"listen", server, "listen", []uint64{3}, allowed},
		{"accept4", server, "accept4", []uint64{3}, allowed},
		{"fast open", server, "sendto", []uint64{3, 1, 1, fastOpen, 1, 16}, "EACCES"},
		{"fast open", server, "sendmsg", []uint64{3, 1, fastOpen}, "EACCES"},
		{"fast open", server, "sendmmsg", []uint64{3, 1, 1, fastOpen}, "EACCES"},

		{"connect", client, "connect", []uint64{3, 1, 16}, allowed},
		{"bind", client, "bind", []uint64{3, 1, 16}, allowed},
		{"listen", client, "listen", []uint64{3}, "EACCES"},
		{"accept", client, "accept", []uint64{3}, "EACCES"},
		{"accept4", client, "accept4", []uint64{3}, "EACCES"},
		{"address", client, "sendto", []uint64{3, 1, 1, 0, 1, 16}, allowed},
		{"datagram pair", client, "socketpair", []uint64{unix_, datagram, 0}, "EPERM"},
		{"listen", internet, "listen", []uint64{3}, allowed},
	}
	for _, policy := range []seccomp.Policy{strict, server} {
		cases = append(cases,
			argumentCase{"no delay", policy, "setsockopt", []uint64{3, 6, 1}, allowed},
			argumentCase{"reuse", policy, "setsockopt", []uint64{3, 1, 2}, allowed},
			argumentCase{"only IPv6", policy, "setsockopt", []uint64{3, 41, 26}, allowed},
			argumentCase{"fast open for servers", policy, "setsockopt", []uint64{3, 6, 23}, allowed},
			argumentCase{"fast open on connect", policy, "setsockopt", []uint64{3, 6, 30}, "EACCES"},
			argumentCase{"fast open on connect, high bits", policy, "setsockopt", []uint64{3, high | 6, high | 30}, "EACCES"},
			argumentCase{"same option, other level", policy, "setsockopt", []uint64{3, 1, 30}, allowed},
			argumentCase{"level that no protocol has", policy, "setsockopt", []uint64{3, 0x10006, 30}, "EPERM"},
			argumentCase{"option that TCP does not have", policy, "setsockopt", []uint64{3, 6, 0x1001e}, "EPERM"})
	}
	cases = append(cases, argumentCase{"fast open on connect", client, "setsockopt", []uint64{3, 6, 30}, allowed})
	runArguments(t, cases)
}

// TestSocketCreation asks for every family, type and a choice of protocols.
func TestSocketCreation(t *testing.T) {
	type kind struct{ family, kind, protocol uint64 }
	tcp := map[kind]bool{}
	udp := map[kind]bool{}
	for _, family := range []uint64{inet, inet6} {
		tcp[kind{family, stream, 0}], tcp[kind{family, stream, 6}] = true, true
		udp[kind{family, datagram, 0}], udp[kind{family, datagram, 17}] = true, true
	}
	route := map[kind]bool{{netlink, raw, 0}: true, {netlink, datagram, 0}: true}
	files := map[kind]bool{}
	for _, kindOf := range []uint64{stream, datagram, seqpacket} {
		files[kind{unix_, kindOf, 0}], files[kind{unix_, kindOf, 1}] = true, true
	}
	tests := []struct {
		name     string
		policy   seccomp.Policy
		families []uint64 // decided by type and protocol
		admitted []map[kind]bool
	}{
		{"none", strict, nil, nil},
		{"server", server, []uint64{inet, inet6}, []map[kind]bool{tcp}},
		{"internet", internet, []uint64{inet, inet6, netlink}, []map[kind]bool{tcp, udp, route}},
		{"supervised Unix", supervisedUnix, nil, []map[kind]bool{files}},
		{"supervised server", supervisedServer, []uint64{inet, inet6}, []map[kind]bool{files, tcp}},
		{"supervised", supervised, []uint64{inet, inet6, netlink}, []map[kind]bool{files, tcp, udp, route}},
	}
	for _, test := range tests {
		for _, arch := range bothArchitectures {
			j := newJail(t, test.policy, arch)
			for family := range uint64(70) {
				for _, kindOf := range []uint64{1, 2, 3, 4, 5, 6, 10} {
					for _, protocol := range []uint64{0, 1, 6, 15, 16, 17, 58, 132, 136, 255, 256, 262} {
						k := kind{family, kindOf, protocol}
						want := "EPERM"
						decided := slices.Contains(test.families, family)
						switch {
						case family == unix_ && test.policy.Supervision == seccomp.Unsupervised:
							want = "EACCES"
						case family == unix_: // EPERM for other types and protocols
						case !decided && family < 64:
							want = "EAFNOSUPPORT"
						}
						for _, set := range test.admitted {
							if set[k] {
								want = allowed
							}
						}
						isIP := decided && family != netlink
						if isIP && kindOf == stream && (protocol == 262 || protocol == 256 || protocol == 132) ||
							isIP && kindOf == datagram && protocol == 136 && slices.Contains(test.families, netlink) {
							want = "EPROTONOSUPPORT"
						}
						for _, args := range [][]uint64{
							{family, kindOf, protocol},
							{family, kindOf | cloexec | nonblock, protocol},
							{high | family, high | kindOf, high | protocol},
						} {
							if got := j.ask("socket", args...); got != want {
								t.Fatalf("%s on %s: socket(%#x) gives %s, want %s", test.name, arch, args, got, want)
							}
						}
					}
				}
			}
		}
	}
}

func TestMetadataArguments(t *testing.T) {
	byPath := []string{
		"chmod", "fchmodat", "fchmodat2", "chown", "lchown", "fchownat", "utime", "utimes", "setxattr", "lsetxattr", "removexattr",
		"lremovexattr",
	}
	orNull := []string{"futimesat", "utimensat"}
	never := []string{"setxattrat", "removexattrat", "file_setattr"} // AT_FDCWD and a null path are the working folder
	onDescriptors := []string{"fchmod", "fchown", "fsetxattr", "fremovexattr"}
	var cases []argumentCase
	for _, policy := range []seccomp.Policy{strict, refusing} {
		answer := ignored
		if policy.Metadata == seccomp.MetadataRefuse {
			answer = "EPERM"
		}
		for _, name := range byPath {
			cases = append(cases,
				argumentCase{"path", policy, name, []uint64{0x7f0000001000, 0x7f0000001000, 1}, answer},
				argumentCase{"null", policy, name, []uint64{0, 0, 0}, answer},
				argumentCase{"empty path flag", policy, name, []uint64{3, 0x7f0000001000, 0, 0, 0x1000}, answer})
		}
		for _, name := range orNull {
			cases = append(cases,
				argumentCase{"path", policy, name, []uint64{0, 0x7f0000001000, 0, 0}, answer},
				argumentCase{"path in the high half", policy, name, []uint64{0, high, 0, 0}, answer},
				argumentCase{"path in the low half", policy, name, []uint64{0, 1, 0, 0}, answer},
				argumentCase{"descriptor", policy, name, []uint64{3, 0, 0x7f0000001000, 0}, allowed})
		}
		for _, name := range never {
			cases = append(cases,
				argumentCase{"path", policy, name, []uint64{0, 0x7f0000001000, 0, 0}, answer},
				argumentCase{"path in the high half", policy, name, []uint64{0, high, 0, 0}, answer},
				argumentCase{"working folder", policy, name, []uint64{0xffffff9c, 0, 0x1000, 0}, "ENOSYS"},
				argumentCase{"descriptor", policy, name, []uint64{3, 0, 1, 0}, "ENOSYS"})
		}
		for _, name := range onDescriptors {
			cases = append(cases, argumentCase{"descriptor", policy, name, []uint64{3, 0o777, 1}, allowed})
		}
	}
	runArguments(t, cases)
}

func TestTruncationArguments(t *testing.T) {
	var cases []argumentCase
	add := func(policy seccomp.Policy, flags uint64, want string) {
		cases = append(cases,
			argumentCase{"flags", policy, "open", []uint64{1, flags, 0o600}, want},
			argumentCase{"flags", policy, "openat", []uint64{3, 1, flags, 0o600}, want})
	}
	for mode, want := range map[uint64]string{0: "EACCES", 1: allowed, 2: allowed, 3: "EACCES"} {
		add(older, oTrunc|mode, want)
		add(older, high|oTrunc|0x80000|mode, want)
		add(older, 0x80040|mode, map[bool]string{true: "EACCES", false: allowed}[mode == 3])
		add(strict, mode, map[bool]string{true: "EACCES", false: allowed}[mode == 3])
		add(strict, high|0x80000|mode, map[bool]string{true: "EACCES", false: allowed}[mode == 3])
		add(strict, oTrunc|mode, map[bool]string{true: "EACCES", false: allowed}[mode == 3])
	}
	cases = append(cases,
		argumentCase{"by path", older, "truncate", []uint64{1, 0}, "EPERM"},
		argumentCase{"by path", strict, "truncate", []uint64{1, 0}, allowed},
		argumentCase{"descriptor", older, "ftruncate", []uint64{3, 0}, allowed},
		argumentCase{"flags by pointer", older, "openat2", []uint64{3, 1, 1, 24}, "ENOSYS"},
		argumentCase{"flags by pointer", strict, "openat2", []uint64{3, 1, 1, 24}, "ENOSYS"},
		argumentCase{"asks to write", older, "creat", []uint64{1, 0o600}, allowed})
	runArguments(t, cases)
}

// TestSetIDArguments: no call makes a file that runs with its owner's or group's rights.
func TestSetIDArguments(t *testing.T) {
	const create, tmpfile = 0o100, 0o20000000
	var cases []argumentCase
	for _, policy := range []seccomp.Policy{strict, refusing, older} {
		for _, bits := range []uint64{0o4000, 0o2000, 0o6000, 0o4755, high | 0o2644} {
			for _, flags := range []uint64{create, tmpfile, create | tmpfile, high | create, create | 2, create | oTrunc | 1, create | 0x80000} {
				cases = append(cases,
					argumentCase{"making", policy, "open", []uint64{1, flags, bits}, "EPERM"},
					argumentCase{"making", policy, "openat", []uint64{3, 1, flags, bits}, "EPERM"},
					argumentCase{"making, plain mode", policy, "open", []uint64{1, flags, bits &^ 0o6000}, allowed},
					argumentCase{"making, plain mode", policy, "openat", []uint64{3, 1, flags, bits &^ 0o6000}, allowed})
			}
			cases = append(cases,
				argumentCase{"not making", policy, "open", []uint64{1, 0x80000, bits}, allowed},
				argumentCase{"not making", policy, "openat", []uint64{3, 1, 0x80000, bits}, allowed},
				argumentCase{"descriptor", policy, "fchmod", []uint64{3, bits}, "EPERM"},
				argumentCase{"by creat", policy, "creat", []uint64{1, bits}, "EPERM"},
				argumentCase{"node", policy, "mknod", []uint64{1, 0o100000 | bits}, "EPERM"},
				argumentCase{"node", policy, "mknodat", []uint64{3, 1, 0o100000 | bits}, "EPERM"})
		}
		cases = append(cases,
			argumentCase{"sticky", policy, "fchmod", []uint64{3, 0o1777}, allowed},
			argumentCase{"node", policy, "mknodat", []uint64{3, 1, 0o100644}, allowed})
	}
	runArguments(t, cases)
}
