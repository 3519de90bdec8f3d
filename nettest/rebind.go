package nettest

import (
	"sync"

	"golang.org/x/net/dns/dnsmessage"
)

// turns gives the addresses of RebindName: one set for each time it is asked.
type turns struct {
	mu     sync.Mutex
	rounds [][]Place
	asked  map[dnsmessage.Type]int
}

// Rebind sets what RebindName resolves to: the first time it is asked the first of rounds,
// then the second, and from there on the last. Queries for IPv4 and IPv6 addresses are
// counted apart.
func (n *Network) Rebind(rounds ...[]Place) {
	n.turns.mu.Lock()
	defer n.turns.mu.Unlock()
	n.turns.rounds, n.turns.asked = rounds, map[dnsmessage.Type]int{}
}

func (r *turns) next(kind dnsmessage.Type) record {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rounds) == 0 {
		return record{}
	}
	turn := min(r.asked[kind], len(r.rounds)-1)
	r.asked[kind]++
	return at(r.rounds[turn]...)
}
