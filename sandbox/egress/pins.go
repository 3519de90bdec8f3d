package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"sync"
)

// Bounds on what a jail can make its supervisor remember.
const (
	// maxLooseNames counts names that only a wildcard rule holds: there is no end of them.
	maxLooseNames = 4096
	// maxAddresses is for each name. Large services answer with a few addresses out of
	// thousands, other ones each minute, so the oldest go.
	maxAddresses = 64
)

// pins are the addresses that names resolved to, for the life of the jail.
type pins struct {
	mu    sync.RWMutex
	names map[string]*pin
	addrs map[netip.Addr][]*pin // each pin whose addresses hold the key
	loose int
}

// pin is one name that a host rule covers.
type pin struct {
	name  string
	rules []int        // those that cover it, as in cover
	addrs []netip.Addr // the latest answer first
}

// cover is the host rules about a name.
type cover struct {
	rules []int // the deciding one first, see [Decider.order]
	loose bool  // all of them are wildcards
}

// full says that a name cannot be added; "" when it is there or can be.
func (p *pins) full(name string, by cover) string {
	if !by.loose {
		return ""
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	if _, known := p.names[name]; known || p.loose < maxLooseNames {
		return ""
	}
	return "wildcard rules have led to " + strconv.Itoa(maxLooseNames) + " names already"
}

// add puts an answer of at most maxAddresses, each once, before what the name has. It returns
// what is held of it: all, or nothing when there is no room for the name.
func (p *pins) add(name string, by cover, answer []netip.Addr) []netip.Addr {
	p.mu.Lock()
	defer p.mu.Unlock()
	held, known := p.names[name]
	if !known {
		if by.loose && p.loose >= maxLooseNames {
			return nil
		}
		if by.loose {
			p.loose++
		}
		held = &pin{name: name, rules: by.rules}
		p.names[name] = held
	}
	addrs := slices.Clone(answer)
	for _, addr := range held.addrs {
		switch {
		case slices.Contains(answer, addr):
		case len(addrs) < maxAddresses:
			addrs = append(addrs, addr)
		default:
			p.forget(addr, held)
		}
	}
	for _, addr := range answer {
		if !slices.Contains(held.addrs, addr) {
			p.addrs[addr] = append(p.addrs[addr], held)
		}
	}
	held.addrs = addrs
	return answer
}

// forget takes a pin from an address. The lock is held.
func (p *pins) forget(addr netip.Addr, held *pin) {
	rest := slices.DeleteFunc(p.addrs[addr], func(other *pin) bool { return other == held })
	if len(rest) == 0 {
		delete(p.addrs, addr)
		return
	}
	p.addrs[addr] = rest
}

// of returns a copy of a name's addresses, the latest answer first.
func (p *pins) of(name string) []netip.Addr {
	p.mu.RLock()
	defer p.mu.RUnlock()
	if held := p.names[name]; held != nil {
		return slices.Clone(held.addrs)
	}
	return nil
}
