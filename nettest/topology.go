package nettest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Place is one address of the network with a meaning, as it shows in hits and in what its
// servers answer.
type Place string

// The places. Those that a rule for a host name must never lead to are listed in [Inside].
const (
	Public     Place = "public"      // a host of one's own
	Public6    Place = "public6"     // the same host
	SixOnly    Place = "six-only"    // a host without an IPv4 address
	CDN        Place = "cdn"         // an address that many names share
	Attacker   Place = "attacker"    // a host that nobody allows
	Private    Place = "private"     // RFC 1918
	Private6   Place = "private6"    // unique local, RFC 4193
	Shared     Place = "shared"      // carrier-grade NAT, RFC 6598
	Metadata   Place = "metadata"    // a cloud's metadata service, link-local
	Metadata6  Place = "metadata6"   // the same over IPv6
	Loopback   Place = "loopback"    // 127.0.0.1
	Loopback6  Place = "loopback6"   // ::1
	Loopback2  Place = "loopback-2"  // another address of 127.0.0.0/8
	NAT64      Place = "nat64"       // the metadata service behind a translator
	SixToFour  Place = "six-to-four" // 127.0.0.1 in a 6to4 prefix
	NameServer Place = "name-server"
	Many       Place = "many"      // a host with more addresses than one datagram tells
	Own        Place = "own"       // a public address of the clients' own machine
	Own6       Place = "own6"      // the same over IPv6
	OwnRoute   Place = "own-route" // an address of a network that is routed to the machine itself
)

// Inside are the places that only an address rule may lead to, or one with addresses: any.
var Inside = []Place{
	Private, Private6, Shared, Metadata, Metadata6, Loopback, Loopback6, Loopback2, NAT64, SixToFour, Own, Own6, OwnRoute,
}

// addresses are the places' addresses. They are real addresses of the public Internet where
// they have to be public: those for documentation are refused by every guard. They never
// leave the namespace.
var addresses = map[Place]netip.Addr{
	Public:     netip.MustParseAddr("93.184.216.34"),
	Public6:    netip.MustParseAddr("2606:2800:220:1::1"),
	SixOnly:    netip.MustParseAddr("2606:2800:220:6::1"),
	CDN:        netip.MustParseAddr("151.101.1.69"),
	Attacker:   netip.MustParseAddr("185.199.108.153"),
	Private:    netip.MustParseAddr("10.0.0.5"),
	Private6:   netip.MustParseAddr("fd12:3456::5"),
	Shared:     netip.MustParseAddr("100.64.0.5"),
	Metadata:   netip.MustParseAddr("169.254.169.254"),
	Metadata6:  netip.MustParseAddr("fd00:ec2::254"),
	Loopback:   netip.MustParseAddr("127.0.0.1"),
	Loopback6:  netip.MustParseAddr("::1"),
	Loopback2:  netip.MustParseAddr("127.0.0.2"),
	NAT64:      netip.MustParseAddr("64:ff9b::a9fe:a9fe"),
	SixToFour:  netip.MustParseAddr("2002:7f00:1::1"),
	NameServer: netip.MustParseAddr("10.0.0.2"),
	Own:        netip.MustParseAddr("93.184.216.30"),
	Own6:       netip.MustParseAddr("2606:2800:220:1::30"),
	OwnRoute:   netip.MustParseAddr("93.184.218.7"),
}

// ownNetwork is routed to the clients' machine, none of whose interfaces has an address in it.
var ownNetwork = netip.MustParsePrefix("93.184.218.0/24")

// places are all that have one address, in an order that does not change.
func places() []Place { return slices.Sorted(maps.Keys(addresses)) }

// side tells the two machines of the network apart.
type side uint8

const (
	// far is the machine that stands for everybody else's.
	far side = iota
	// near is the machine that tests and clients run on.
	near
)

func sideOf(p Place) side {
	switch p {
	case Loopback, Loopback6, Loopback2, Own, Own6, OwnRoute:
		return near
	default:
		return far
	}
}

// Address returns the address of a place; not of [Many], which has a hundred.
func Address(p Place) netip.Addr { return addresses[p] }

// manyAddresses is how many addresses [Many] has: with 16 bytes each in an answer, more
// than any client takes in a datagram.
const manyAddresses = 100

func addressOfMany(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{93, 184, 217, byte(1 + i%manyAddresses)}) //nolint:gosec // below 256
}

// deadNetwork is routed and leads nowhere: with forwarding off, what is sent to the loopback
// interface for an address that is not local is dropped there without an answer.
var deadNetwork = netip.MustParsePrefix("2606:2800:dead::/48")

// dead is an address in it.
var dead = netip.MustParseAddr("2606:2800:dead::1")

// Interfaces are all that the clients' machine has; the second leads to everybody else's.
var Interfaces = []string{"lo", "ext0"}

// farInterface is where the other machine is reached.
const farInterface = "ext1"

const (
	// nameSwitch has no module that asks anybody else.
	nameSwitch = "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\n"
	resolvConf = "# the test network\nnameserver 10.0.0.2\noptions timeout:5 attempts:2\n"
)

// setUp makes two machines out of namespaces: the one that it is called in, which programs of
// the tests run on, with this network's files in the place of its own; and another one that
// has every address but those of the first. It returns what listens on both. The caller is
// in new network and mount namespaces, and has locked its thread.
func setUp(folder string) ([]socket, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("making mounts private: %w", err)
	}
	for path, text := range map[string]string{
		"/etc/resolv.conf": resolvConf, "/etc/hosts": hostsFile(), "/etc/nsswitch.conf": nameSwitch,
	} {
		own := filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil { //nolint:gosec // every user's programs read it
			return nil, fmt.Errorf("writing the network's %s: %w", path, err)
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("mounting over %s: %w", path, err)
		}
	}
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening the clients' network: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("making the servers' network: %w", err)
	}
	there, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return nil, fmt.Errorf("opening the servers' network: %w", err)
	}
	defer func() { _, _ = here.Close(), there.Close() }() // nothing was written
	// The cable is laid from here, so this machine's end is the first to be there.
	var sockets []socket
	for _, step := range []struct {
		side    side
		network *os.File
		script  string
	}{
		{near, here, nearScript(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), there.Fd()))},
		{far, there, farScript()},
	} {
		opened, err := onMachine(step.network, step.script, step.side)
		if err != nil {
			return nil, err
		}
		sockets = append(sockets, opened...)
	}
	return sockets, enterNetwork(here)
}

func enterNetwork(network *os.File) error {
	if err := unix.Setns(int(network.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering a network: %w", err)
	}
	return nil
}

// onMachine sets one of the machines up and opens what listens there.
func onMachine(network *os.File, script string, s side) ([]socket, error) {
	if err := enterNetwork(network); err != nil {
		return nil, err
	}
	if err := configure(script); err != nil {
		return nil, err
	}
	// Ordinary users serve on 53, 80 and 443. The setting belongs to this network alone.
	const ports = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	if err := os.WriteFile(ports, []byte("0"), 0o600); err != nil {
		return nil, fmt.Errorf("opening low ports to ordinary users: %w", err)
	}
	return openDoors(s)
}

// linkScript sets an end of the cable up. An address that the kernel adds later by itself would
// be a change of networks, at which browsers drop what they load.
func linkScript(b *strings.Builder, name string) {
	fmt.Fprintf(b, "link set lo up\nlink set %s addrgenmode none\nlink set %[1]s up\n", name)
}

// addressScript gives an interface an address, at once: nobody else could have it.
func addressScript(b *strings.Builder, address netip.Addr, name string) {
	fmt.Fprintf(b, "address add %s dev %s", netip.PrefixFrom(address, address.BitLen()), name)
	if address.Is6() {
		b.WriteString(" nodad")
	}
	b.WriteString("\n")
}

// nearScript sets up the machine that clients run on. Browsers call one offline that has no
// interface but the loopback one.
func nearScript(otherNetwork string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "link add %s type veth peer name %s netns %s\n", Interfaces[1], farInterface, otherNetwork)
	linkScript(&b, Interfaces[1])
	addressScript(&b, addresses[Own], Interfaces[1])
	addressScript(&b, addresses[Own6], Interfaces[1])
	fmt.Fprintf(&b, "route add local %s dev lo\n", ownNetwork)
	for _, place := range places() {
		if sideOf(place) == far {
			fmt.Fprintf(&b, "route add %s dev %s\n", addresses[place], Interfaces[1])
		}
	}
	for i := range manyAddresses {
		fmt.Fprintf(&b, "route add %s dev %s\n", addressOfMany(i), Interfaces[1])
	}
	// Programs that ask whether there is IPv6 at all look for a route to a public resolver.
	for _, network := range []string{deadNetwork.String(), "2001:4860:4860::/48", "8.8.8.0/24"} {
		fmt.Fprintf(&b, "route add %s dev lo\n", network)
	}
	return b.String()
}

// farScript sets up the machine that everybody else's servers run on.
func farScript() string {
	var b strings.Builder
	linkScript(&b, farInterface)
	for _, place := range places() {
		if sideOf(place) == far {
			addressScript(&b, addresses[place], farInterface)
		}
	}
	for i := range manyAddresses {
		addressScript(&b, addressOfMany(i), farInterface)
	}
	fmt.Fprintf(&b, "route add %s dev %s\nroute add %s dev %[2]s\n", addresses[Own], farInterface, addresses[Own6])
	return b.String()
}

// configure tells the kernel addresses and routes.
func configure(script string) error {
	program, err := findIP()
	if err != nil {
		return err
	}
	cmd := exec.Command(program, "-batch", "-")
	cmd.Stdin = strings.NewReader(script)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("configuring the interfaces: %w: %s", err, stderr.String())
	}
	return nil
}

// findIP finds the program of iproute2, which is not on an ordinary user's path everywhere.
func findIP() (string, error) {
	for _, path := range []string{"/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip", "/bin/ip"} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("finding ip of iproute2: not in /usr/sbin, /sbin, /usr/bin or /bin")
}
