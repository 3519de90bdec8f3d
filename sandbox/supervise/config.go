package supervise

import (
	"net/netip"

	"stockade/sandbox/egress"
)

// Config is what a supervisor needs; all of it is made before the server starts.
type Config struct {
	Listener int    // seccomp notification descriptor; Serve closes it
	PID      int    // of the server
	Profile  string // name of the profile, for denials

	// Egress decides on Internet addresses; nil refuses them all. Stub and Relay come with it.
	Egress *egress.Decider
	Stub   *egress.Stub
	Relay  *egress.Relay
	// Own tells which addresses are this machine's; nil asks the kernel.
	Own egress.Own
	// Servers are the name servers of this machine: the only ones that a datagram to port 53
	// may name, unless an address rule allows it.
	Servers []netip.AddrPort

	Unix   Unix
	Listen []uint16 // TCP ports that the server may listen on

	// Deny is told each refusal once, from several goroutines, after the server has its
	// answer. The next call waits for it.
	Deny func(egress.Denial)

	// Observation tells of what the kernel refuses; nil for nothing.
	Observation *Observation
}

// Unix says which socket files the server may connect and send to.
type Unix struct {
	Sockets []string // real paths of granted sockets
	Own     []string // real paths of the jail's own folders: any socket in them
}
