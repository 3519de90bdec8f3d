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
	hosts   *hosts
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

func start(folder string, sockets []socket) (*Network, error) {
	authority, err := newIssuer(filepath.Join(folder, "authority.pem"))
	if err != nil {
		return nil, err
	}
	n := &Network{journal: newJournal(), turns: &turns{}, hosts: &hosts{known: map[string]host{}}, issuer: authority, folder: folder}
	n.Rebind([]Place{Public}, []Place{Private})
	for _, s := range sockets {
		if err := n.serve(s); err != nil {
			return nil, fmt.Errorf("starting %s: %w", s.door.place, err)
		}
		n.doors = append(n.doors, s.door)
	}
	return n, nil
}

// serve starts the server of one doorway. All name servers say the same.
func (n *Network) serve(s socket) error {
	door := s.door
	names := &nameServer{records: records(), journal: n.journal, turns: n.turns, hosts: n.hosts}
	if door.network == "udp" {
		conn, err := s.packets()
		if err != nil {
			return err
		}
		if door.address.Port() == NamePort {
			go names.serveUDP(conn, door)
		} else {
			go n.echoDatagrams(conn, door)
		}
		return nil
	}
	inner, err := s.listener()
	if err != nil {
		return err
	}
	listener := &countingListener{TCPListener: inner, door: door, journal: n.journal}
	switch door.address.Port() {
	case NamePort:
		go names.serveTCP(listener)
	case HTTPSPort:
		server := n.webServer(door)
		go func() { _ = server.ServeTLS(listener, "", "") }() // it ends with the process
	case HTTPPort, LocalPort:
		server := n.webServer(door)
		go func() { _ = server.Serve(listener) }() // it ends with the process
	default:
		go echoStreams(listener)
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
// every door itself, from where clients are: a listener hands out connections in the order in which they came, and
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
	if sideOf(door.place) == far {
		own := addresses[Own]
		if door.address.Addr().Is6() {
			own = addresses[Own6]
		}
		from = netip.AddrPortFrom(own, knockPort)
	}
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
