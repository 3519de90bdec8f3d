package nettest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// Ports of the network. Every place but [NameServer] serves all that are listed with it.
const (
	NamePort   = 53 // DNS, on [NameServer] and [Attacker]
	HTTPPort   = 80
	HTTPSPort  = 443
	DataPort   = 5432 // TCP: sends back what it gets
	OtherPort  = 5433 // TCP: the same, for a port that no rule names
	LocalPort  = 8000 // HTTP on a port that guards know nothing about
	DatagramTo = 7000 // UDP: sends back what it gets
	QUICPort   = 443  // UDP: counts, answers nothing
)

// Network is the running network. It lives as long as the test process.
type Network struct {
	journal *journal
	turns   *turns
	issuer  *issuer
	folder  string
	doors   []doorway
	// settling holds the number of rounds in which the network has knocked at every door.
	settling struct {
		sync.Mutex
		rounds int
	}

	repository sync.Once
}

// doorway is where a server listens.
type doorway struct {
	network string // "tcp" or "udp"
	place   Place
	address netip.AddrPort
}

func start(folder string) (*Network, error) {
	authority, err := newIssuer(filepath.Join(folder, "authority.pem"))
	if err != nil {
		return nil, err
	}
	n := &Network{journal: newJournal(), turns: &turns{}, issuer: authority, folder: folder}
	n.Rebind([]Place{Public}, []Place{Private})
	// The second is a resolver of somebody's own choice.
	for _, place := range []Place{NameServer, Attacker} {
		if err := n.startNames(place); err != nil {
			return nil, err
		}
	}
	for place, address := range addresses {
		if place == NameServer {
			continue
		}
		if err := n.startPlace(place, address, HTTPPort, HTTPSPort, DataPort, OtherPort, LocalPort); err != nil {
			return nil, err
		}
		if err := n.startDatagrams(place, address, DatagramTo, QUICPort); err != nil {
			return nil, err
		}
	}
	for i := range manyAddresses {
		if err := n.startPlace(Many, addressOfMany(i), HTTPSPort); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// startNames starts a name server at a place. All of them say the same.
func (n *Network) startNames(place Place) error {
	address := netip.AddrPortFrom(addresses[place], NamePort)
	datagrams := doorway{network: "udp", place: place, address: address}
	streams := doorway{network: "tcp", place: place, address: address}
	server := &nameServer{records: records(), journal: n.journal, turns: n.turns}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(address))
	if err != nil {
		return fmt.Errorf("starting the name server: %w", err)
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(address))
	if err != nil {
		return fmt.Errorf("starting the name server: %w", err)
	}
	n.doors = append(n.doors, datagrams, streams)
	go server.serveUDP(conn, datagrams)
	go server.serveTCP(&countingListener{TCPListener: listener, door: streams, journal: n.journal})
	return nil
}

// startPlace starts the stream servers of one address.
func (n *Network) startPlace(place Place, address netip.Addr, ports ...uint16) error {
	for _, port := range ports {
		door := doorway{network: "tcp", place: place, address: netip.AddrPortFrom(address, port)}
		inner, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(door.address))
		if err != nil {
			return fmt.Errorf("starting %s: %w", place, err)
		}
		n.doors = append(n.doors, door)
		listener := &countingListener{TCPListener: inner, door: door, journal: n.journal}
		switch port {
		case HTTPSPort:
			server := n.webServer(door)
			go func() { _ = server.ServeTLS(listener, "", "") }() // it ends with the process
		case HTTPPort, LocalPort:
			server := n.webServer(door)
			go func() { _ = server.Serve(listener) }() // it ends with the process
		default:
			go echoStreams(listener)
		}
	}
	return nil
}

// startDatagrams starts the datagram servers of one address.
func (n *Network) startDatagrams(place Place, address netip.Addr, ports ...uint16) error {
	for _, port := range ports {
		door := doorway{network: "udp", place: place, address: netip.AddrPortFrom(address, port)}
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(door.address))
		if err != nil {
			return fmt.Errorf("starting datagrams of %s: %w", place, err)
		}
		n.doors = append(n.doors, door)
		go n.echoDatagrams(conn, door)
	}
	return nil
}

// CAFile is the certificate of the authority that signed every server's, in PEM. Any user
// may read it.
func (n *Network) CAFile() string { return n.issuer.path }

// Folder is a folder that any user may read, for what tests build. It goes with the network.
func (n *Network) Folder() string { return n.folder }

// knockPort is the port from which the network knocks at its own doors. It lies below the
// range that the kernel gives to clients (ip_local_port_range, from 32768).
const knockPort = 20000

// settle returns when everything that clients have sent so far is counted. It knocks at
// every door itself: a listener hands out connections in the order in which they came, and
// a socket its datagrams, so when the knock is counted, all before it are. Then it waits
// until every connection is closed, since a server name or a request is counted later than
// its connection.
func (n *Network) settle(t testing.TB) {
	t.Helper()
	n.settling.Lock()
	defer n.settling.Unlock()
	n.settling.rounds++
	for _, door := range n.doors {
		if err := knock(t.Context(), door); err != nil {
			t.Fatalf("settling the network: %v", err)
		}
	}
	waiting := slices.Clone(n.doors)
	err := n.journal.wait(func() bool {
		waiting = slices.DeleteFunc(waiting, func(d doorway) bool { return n.journal.knocks[d] == n.settling.rounds })
		return len(waiting) == 0 && n.journal.open == 0
	})
	if err != nil {
		t.Fatalf("settling the network: %v; not counted: %v; %d connections open", err, waiting, n.journal.open)
	}
}

// knock connects to a server and breaks off, or sends it a datagram.
func knock(ctx context.Context, door doorway) error {
	from := netip.AddrPortFrom(door.address.Addr(), knockPort)
	dialer := net.Dialer{Timeout: settleTime, LocalAddr: net.TCPAddrFromAddrPort(from)}
	if door.network == "udp" {
		dialer.LocalAddr = net.UDPAddrFromAddrPort(from)
	}
	conn, err := dialer.DialContext(ctx, door.network, door.address.String())
	if err != nil {
		return err
	}
	if stream, is := conn.(*net.TCPConn); is {
		// A reset leaves no trace of the port, which the next round needs.
		err = stream.SetLinger(0)
	} else {
		_, err = conn.Write([]byte("knock"))
	}
	return errors.Join(err, conn.Close())
}

// requestTimeout bounds a client that opens a connection and says nothing; browsers do.
const requestTimeout = 30 * time.Second

// webServer serves one doorway.
func (n *Network) webServer(door doorway) *http.Server {
	return &http.Server{
		Handler: n.site(door), TLSConfig: n.tlsConfig(door), ErrorLog: silent(),
		ReadHeaderTimeout: requestTimeout,
	}
}
