package egress

import (
	"net/netip"
	"slices"
	"sync"
)

// ownPorts are the loopback ports of a jail's own resolver and relay, which no rule for a name
// leads to: whoever answers for a name knows them as little as anybody, but could try them all.
type ownPorts struct {
	mu    sync.RWMutex
	ports []uint16
}

func (o *ownPorts) add(port uint16) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ports = append(o.ports, port)
}

func (o *ownPorts) holds(to netip.AddrPort) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return to.Addr().IsLoopback() && slices.Contains(o.ports, to.Port())
}
