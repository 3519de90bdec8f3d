package nettest

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// doorway is where a server listens.
type doorway struct {
	network string // "tcp" or "udp"
	place   Place
	address netip.AddrPort
}

// doorways are all of them, in an order that does not change.
func doorways() []doorway {
	var doors []doorway
	open := func(network string, place Place, address netip.Addr, ports ...uint16) {
		for _, port := range ports {
			doors = append(doors, doorway{network: network, place: place, address: netip.AddrPortFrom(address, port)})
		}
	}
	// The second is a resolver of somebody's own choice.
	for _, place := range []Place{NameServer, Attacker} {
		open("udp", place, addresses[place], NamePort)
		open("tcp", place, addresses[place], NamePort)
	}
	for _, place := range places() {
		if place != NameServer {
			open("tcp", place, addresses[place], HTTPPort, HTTPSPort, DataPort, OtherPort, LocalPort)
			open("udp", place, addresses[place], DatagramTo, QUICPort)
		}
	}
	for i := range manyAddresses {
		open("tcp", Many, addressOfMany(i), HTTPSPort)
	}
	return doors
}

// socket is a doorway's, opened.
type socket struct {
	door doorway
	file *os.File
}

// openDoors opens those on one side, in the network that the calling thread is in.
func openDoors(side side) ([]socket, error) {
	var out []socket
	for _, door := range doorways() {
		if sideOf(door.place) != side {
			continue
		}
		file, err := door.open()
		if err != nil {
			return nil, fmt.Errorf("starting %s: %w", door.place, err)
		}
		out = append(out, socket{door, file})
	}
	return out, nil
}

// open returns the socket with its file description alone: what listens belongs to the network
// that it was made in, whichever process takes it over.
func (d doorway) open() (*os.File, error) {
	if d.network == "udp" {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(d.address))
		if err != nil {
			return nil, err
		}
		file, err := conn.File()
		return file, errors.Join(err, conn.Close())
	}
	listener, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(d.address))
	if err != nil {
		return nil, err
	}
	file, err := listener.File()
	return file, errors.Join(err, listener.Close())
}

// handOver lets the next program have the sockets, and returns the word by which it finds them.
func handOver(sockets []socket) (string, error) {
	var numbers []string
	for _, door := range doorways() {
		at := slices.IndexFunc(sockets, func(s socket) bool { return s.door == door })
		if at < 0 {
			return "", fmt.Errorf("nobody opened %v", door)
		}
		fd := sockets[at].file.Fd()
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return "", fmt.Errorf("handing %v over: %w", door, err)
		}
		numbers = append(numbers, strconv.Itoa(int(fd)))
	}
	return strings.Join(numbers, ","), nil
}

// takeOver finds the sockets again. They are for this process alone from then on.
func takeOver(word string) ([]socket, error) {
	doors, numbers := doorways(), strings.Split(word, ",")
	if len(doors) != len(numbers) {
		return nil, fmt.Errorf("%d sockets for %d doors", len(numbers), len(doors))
	}
	var out []socket
	for i, text := range numbers {
		fd, err := strconv.Atoi(text)
		if err != nil {
			return nil, err
		}
		unix.CloseOnExec(fd)
		out = append(out, socket{doors[i], os.NewFile(uintptr(fd), text)}) //nolint:gosec // a descriptor
	}
	return out, nil
}

// listener and packets turn a socket into what servers take. The copies are theirs.
func (s socket) listener() (*net.TCPListener, error) {
	l, err := net.FileListener(s.file)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), s.file.Close()
}

func (s socket) packets() (*net.UDPConn, error) {
	c, err := net.FilePacketConn(s.file)
	if err != nil {
		return nil, err
	}
	return c.(*net.UDPConn), s.file.Close()
}
