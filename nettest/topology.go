package nettest

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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
	Many       Place = "many" // a host with more addresses than one datagram tells
)

// Inside are the places that only an address rule may lead to.
var Inside = []Place{
	Private, Private6, Shared, Metadata, Metadata6, Loopback, Loopback6, Loopback2, NAT64, SixToFour,
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

// Interfaces are all that the network has.
var Interfaces = []string{"lo", "ext0", "ext1"}

const (
	// nameSwitch has no module that asks anybody else.
	nameSwitch = "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\n"
	resolvConf = "# the test network\nnameserver 10.0.0.2\noptions timeout:5 attempts:2\n"
)

// setUp makes the addresses and routes, and puts files of this network in the place of the
// machine's own. It runs in new network and mount namespaces.
func setUp(folder string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	for path, text := range map[string]string{
		"/etc/resolv.conf": resolvConf, "/etc/hosts": hostsFile(), "/etc/nsswitch.conf": nameSwitch,
	} {
		own := filepath.Join(folder, filepath.Base(path))
		if err := os.WriteFile(own, []byte(text), 0o644); err != nil { //nolint:gosec // every user's programs read it
			return fmt.Errorf("writing the network's %s: %w", path, err)
		}
		if err := unix.Mount(own, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting over %s: %w", path, err)
		}
	}
	if err := configure(); err != nil {
		return err
	}
	// Ordinary users serve on 53, 80 and 443. The setting belongs to this network alone.
	const ports = "/proc/sys/net/ipv4/ip_unprivileged_port_start"
	if err := os.WriteFile(ports, []byte("0"), 0o600); err != nil {
		return fmt.Errorf("opening low ports to ordinary users: %w", err)
	}
	return nil
}

// configure tells the kernel the addresses and routes.
func configure() error {
	program, err := findIP()
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("link set lo up\n")
	// Browsers call a machine without any other interface offline. What goes out at one end
	// of the pair comes in at the other, where nobody takes it. An address that the kernel adds
	// later by itself would be a change of networks, at which browsers drop what they load.
	fmt.Fprintf(&script, "link add %s type veth peer name %s\n", Interfaces[1], Interfaces[2])
	for _, name := range Interfaces[1:] {
		fmt.Fprintf(&script, "link set %s addrgenmode none\nlink set %[1]s up\n", name)
	}
	fmt.Fprintf(&script, "address add 93.184.216.30/32 dev %s\n", Interfaces[1])
	for _, address := range addresses {
		if !address.IsLoopback() {
			fmt.Fprintf(&script, "address add %s dev lo\n", netip.PrefixFrom(address, address.BitLen()))
		}
	}
	for i := range manyAddresses {
		fmt.Fprintf(&script, "address add %s/32 dev lo\n", addressOfMany(i))
	}
	// Programs that ask whether there is IPv6 at all look for a route to a public resolver.
	for _, network := range []string{deadNetwork.String(), "2001:4860:4860::/48", "8.8.8.0/24"} {
		fmt.Fprintf(&script, "route add %s dev lo\n", network)
	}
	cmd := exec.Command(program, "-batch", "-")
	cmd.Stdin = strings.NewReader(script.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("configuring the loopback interface: %w: %s", err, stderr.String())
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
