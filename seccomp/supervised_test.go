package seccomp_test

import (
	"fmt"
	"slices"
	"testing"

	"stockade/seccomp"
)

// Options that send packets elsewhere than to the address of the call, from linux/in.h and
// linux/in6.h.
var (
	rerouting4 = []uint64{4, 35, 37, 38, 39, 41, 42, 43, 44, 45, 46, 47, 48}
	rerouting6 = []uint64{3, 4, 5, 6, 9, 20, 27, 32, 42, 43, 44, 45, 46, 47, 48, 54, 55, 57, 59}
)

const (
	levelIP, levelTCP, levelIPv6 = 0, 6, 41
	newListener                  = 8
)

func TestSupervisedArguments(t *testing.T) {
	for _, policy := range []seccomp.Policy{supervisedUnix, supervisedServer, supervised} {
		runArguments(t, supervisedCalls(policy))
	}
}

func TestSupervisedOptions(t *testing.T) {
	for _, policy := range []seccomp.Policy{supervisedUnix, supervisedServer, supervised} {
		for _, c := range supervisedOptions(policy) {
			c.check(t) // thousands, too many for subtests
		}
	}
}

func supervisedCalls(policy seccomp.Policy) []argumentCase {
	return []argumentCase{
		{"any", policy, "connect", []uint64{3, 1, 16}, waits},
		{"null", policy, "connect", []uint64{0, 0, 0}, waits},
		{"any", policy, "listen", []uint64{3, 1}, waits},
		{"any", policy, "bind", []uint64{3, 1, 16}, waits},
		{"parent's end", policy, "prctl", []uint64{1, 0}, "EPERM"},
		{"parent's end, high bits", policy, "prctl", []uint64{high | 1, 9}, "EPERM"},
		{"name", policy, "prctl", []uint64{15, 1}, allowed},
		{"ask for the parent's end", policy, "prctl", []uint64{2, 1}, allowed},
		{"memory name", policy, "prctl", []uint64{0x53564d41, 0}, allowed},
		{"any", policy, "accept", []uint64{3}, allowed},
		{"any", policy, "accept4", []uint64{3}, allowed},

		{"no address", policy, "sendto", []uint64{3, 1, 1, 0x4000, 0, 0}, allowed},
		{"no address, a length", policy, "sendto", []uint64{3, 1, 1, 0, 0, 16}, allowed},
		{"no address, high flags", policy, "sendto", []uint64{3, 1, 1, fastOpen << 32, 0, 0}, allowed},
		{"address", policy, "sendto", []uint64{3, 1, 1, 0, 1, 16}, waits},
		{"address in the high half", policy, "sendto", []uint64{3, 1, 1, 0, high, 16}, waits},
		{"address in the highest bit", policy, "sendto", []uint64{3, 1, 1, 0, 1 << 63, 16}, waits},
		{"address without a length", policy, "sendto", []uint64{3, 1, 1, 0, 1, 0}, waits},
		{"address and flags", policy, "sendto", []uint64{3, 1, 1, 0xffffffff &^ fastOpen, 1, 16}, waits},
		{"fast open", policy, "sendto", []uint64{3, 1, 1, fastOpen, 0, 0}, "EACCES"},
		{"fast open with an address", policy, "sendto", []uint64{3, 1, 1, high | fastOpen | 0x4000, 1, 16}, "EACCES"},

		{"any", policy, "sendmsg", []uint64{3, 1, 0x4000}, waits},
		{"high flags", policy, "sendmsg", []uint64{3, 1, fastOpen << 32}, waits},
		{"fast open", policy, "sendmsg", []uint64{3, 1, fastOpen}, "EACCES"},
		{"fast open, high bits", policy, "sendmsg", []uint64{3, 1, high | fastOpen | 0x40}, "EACCES"},
		{"any", policy, "sendmmsg", []uint64{3, 1, fastOpen, 0}, waits},
		{"fast open", policy, "sendmmsg", []uint64{3, 1, 1, fastOpen}, "EACCES"},
		{"fast open, high bits", policy, "sendmmsg", []uint64{3, 1, 1, high | fastOpen}, "EACCES"},

		{"message", policy, "recvmsg", []uint64{3, 1, 0}, allowed},
		{"connected", policy, "write", []uint64{3, 1, 1}, allowed},

		{"filter", policy, "seccomp", []uint64{1, 1, 1}, allowed},
		{"strict", policy, "seccomp", []uint64{0, 0, 0}, allowed},
		{"listener", policy, "seccomp", []uint64{1, newListener, 1}, "EBUSY"},
		{"listener and more", policy, "seccomp", []uint64{1, high | 0x20 | newListener | 1, 1}, "EBUSY"},
		{"high flags", policy, "seccomp", []uint64{1, newListener << 32, 1}, allowed},

		{"pair, stream", policy, "socketpair", []uint64{unix_, stream, 0}, allowed},
		{"pair, datagram", policy, "socketpair", []uint64{unix_, datagram, 0}, "EPERM"},
	}
}

func supervisedOptions(policy seccomp.Policy) []argumentCase {
	cases := []argumentCase{
		{"fast open on connect", policy, "setsockopt", []uint64{3, levelTCP, 30}, "EACCES"},
		{"fast open on connect, high bits", policy, "setsockopt", []uint64{3, high | levelTCP, high | 30}, "EACCES"},
		{"beyond TCP", policy, "setsockopt", []uint64{3, levelTCP, 128}, "EPERM"},
		{"beyond IP", policy, "setsockopt", []uint64{3, levelIP, 128}, "EPERM"},
		{"beyond IPv6", policy, "setsockopt", []uint64{3, levelIPv6, 1 << 16}, "EPERM"},
		{"beyond the levels", policy, "setsockopt", []uint64{3, 512, 4}, "EPERM"},
		{"level that is another one's", policy, "setsockopt", []uint64{3, 0x10000, 4}, "EPERM"},
	}
	for level, refused := range map[uint64][]uint64{levelIP: rerouting4, levelIPv6: rerouting6} {
		for option := range uint64(128) {
			want := allowed
			if slices.Contains(refused, option) {
				want = "EPERM"
			}
			cases = append(cases,
				argumentCase{fmt.Sprintf("level %d", level), policy, "setsockopt", []uint64{3, level, option}, want},
				argumentCase{fmt.Sprintf("level %d, high bits", level), policy, "setsockopt", []uint64{3, high | level, high | option}, want})
		}
	}
	for level := range uint64(512) {
		if level != levelIP && level != levelTCP && level != levelIPv6 {
			cases = append(cases,
				argumentCase{"other level", policy, "setsockopt", []uint64{3, level, 4}, allowed},
				argumentCase{"other level", policy, "setsockopt", []uint64{3, level, 30}, allowed},
				argumentCase{"other level", policy, "setsockopt", []uint64{3, level, 57}, allowed})
		}
	}
	return cases
}

// TestUnsupervisedOptions holds that source routes stay an option where no supervisor
// decides on addresses.
func TestUnsupervisedOptions(t *testing.T) {
	runArguments(t, []argumentCase{
		{"source route", client, "setsockopt", []uint64{3, levelIP, 4}, allowed},
		{"routing header", client, "setsockopt", []uint64{3, levelIPv6, 57}, allowed},
		{"listener", client, "seccomp", []uint64{1, newListener, 1}, allowed},
	})
}

// TestSupervisionDecidesAlone: under a supervisor, what it decides on is not also decided
// by the other words of a policy, and equal filters have equal presets.
func TestSupervisionDecidesAlone(t *testing.T) {
	groups := [][]seccomp.Policy{
		{
			supervisedUnix,
			{Supervision: seccomp.SupervisedUnix, Listening: seccomp.ListenAllowed},
		},
		{
			supervisedServer,
			{Supervision: seccomp.SupervisedUnix, Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed},
		},
		{
			supervised,
			{Supervision: seccomp.SupervisedInternet, Listening: seccomp.ListenAllowed},
			{Supervision: seccomp.SupervisedInternet, Sockets: seccomp.ListenSockets, Listening: seccomp.ListenAllowed},
			{Supervision: seccomp.SupervisedInternet, Sockets: seccomp.InternetSockets},
		},
	}
	seen := map[string]bool{}
	for _, group := range groups {
		want := string(build(t, group[0], "amd64").Bytes())
		if seen[want] {
			t.Errorf("%+v has the filter of another group", group[0])
		}
		seen[want] = true
		preset := seccomp.Preset(group[0])
		if preset == "" {
			t.Errorf("%+v has no preset", group[0])
		}
		for _, policy := range group[1:] {
			if string(build(t, policy, "amd64").Bytes()) != want {
				t.Errorf("%+v: the filter is not that of %+v", policy, group[0])
			}
			if seccomp.Preset(policy) != preset {
				t.Errorf("%+v: the preset is not that of %+v", policy, group[0])
			}
		}
	}
}

// TestSupervisionOverOwnList: a person's list takes away, and opens nothing that waits.
func TestSupervisionOverOwnList(t *testing.T) {
	wide := supervised
	wide.Base = enginesList(t)
	narrow := supervised
	narrow.Base = parseBase(t, anywhere(`{"names": ["read", "connect", "sendto"], "action": "SCMP_ACT_ALLOW"}`))
	conditional := supervised
	conditional.Base = parseBase(t, anywhere(`
		{"names": ["connect"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 2, "value": 16, "op": "SCMP_CMP_EQ"}]},
		{"names": ["listen"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 1, "value": 8, "op": "SCMP_CMP_LE"}]},
		{"names": ["sendmsg"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}`))
	runArguments(t, []argumentCase{
		{"wide list", wide, "connect", []uint64{3, 1, 16}, waits},
		{"wide list", wide, "listen", []uint64{3, 1}, waits},
		{"wide list", wide, "sendto", []uint64{3, 1, 1, 0, 1, 16}, waits},
		{"wide list", wide, "sendto", []uint64{3, 1, 1, 0, 0, 0}, allowed},
		{"wide list", wide, "sendto", []uint64{3, 1, 1, fastOpen, 1, 16}, "EACCES"},
		{"wide list", wide, "sendmsg", []uint64{3, 1, 0}, waits},
		{"wide list", wide, "sendmmsg", []uint64{3, 1, 1, 0}, waits},
		{"wide list", wide, "setsockopt", []uint64{3, levelIPv6, 57}, "EPERM"},
		{"wide list", wide, "seccomp", []uint64{1, newListener, 1}, "EBUSY"},
		{"narrow list", narrow, "connect", []uint64{3, 1, 16}, waits},
		{"narrow list", narrow, "sendto", []uint64{3, 1, 1, 0, 1, 16}, waits},
		{"narrow list", narrow, "sendmsg", []uint64{3, 1, 0}, "EPERM"},
		{"narrow list", narrow, "sendmmsg", []uint64{3, 1, 1, 0}, "EPERM"},
		{"narrow list", narrow, "listen", []uint64{3, 1}, "EPERM"},
		{"condition", conditional, "connect", []uint64{3, 1, 16}, waits},
		{"condition", conditional, "connect", []uint64{3, 1, 28}, "EPERM"},
		{"condition of order", conditional, "listen", []uint64{3, 8}, waits}, // libseccomp's part
		{"condition of order", conditional, "listen", []uint64{3, 9}, "EPERM"},
		{"refused", conditional, "sendmsg", []uint64{3, 1, 0}, "EPERM"},
	})
}

// anywhere wraps syscalls entries into a file for every architecture.
func anywhere(entries string) string {
	return `{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [` + entries + `]}`
}

func TestSupervisionAndNames(t *testing.T) {
	for _, name := range []string{"connect", "sendto", "sendmsg", "sendmmsg", "listen", "setsockopt", "socket", "bind", "prctl", "seccomp", "io_uring_setup", "io_uring_enter", "io_uring_register"} {
		policy := supervised
		policy.Allow = []string{name}
		filter, err := policy.FilterFor("amd64")
		if err == nil {
			t.Errorf("%s was opened: %v", name, entriesOf(filter, name))
			continue
		}
		if errs := callErrors(t, err); len(errs) != 1 || errs[0].Name != name {
			t.Errorf("%s: got %v", name, err)
		}
	}
	var cases []argumentCase
	for _, name := range []string{"connect", "sendto", "sendmsg", "sendmmsg", "listen", "seccomp"} {
		policy := supervised
		policy.Deny = []string{name}
		cases = append(cases,
			argumentCase{"denied", policy, name, []uint64{3, 1, 0, 0, 1, 16}, "EPERM"},
			argumentCase{"denied", policy, name, nil, "EPERM"})
	}
	runArguments(t, cases)
	if _, err := (seccomp.Policy{Allow: []string{"seccomp"}}).FilterFor("amd64"); err != nil {
		t.Errorf("without a supervisor: %v", err)
	}
}
