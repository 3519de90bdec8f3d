package egress

import (
	"net/netip"
	"strconv"
	"testing"
)

// TestPinsDoNotGrow looks inside for what no decision shows: memory that a jail could make
// its supervisor fill.
func TestPinsDoNotGrow(t *testing.T) {
	p := pins{names: map[string]*pin{}, addrs: map[netip.Addr][]*pin{}}
	nth := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{8, byte(i >> 16), byte(i >> 8), byte(i)}) }
	by := cover{rules: []int{0}, loose: true}
	for range 1000 {
		p.add("a.example", by, []netip.Addr{nth(0), nth(1)})
	}
	if len(p.addrs[nth(0)]) != 1 || len(p.names["a.example"].addrs) != 2 || p.loose != 1 {
		t.Errorf("the same answer again grows: %d pins, %d addresses, %d names", len(p.addrs[nth(0)]), len(p.names["a.example"].addrs), p.loose)
	}
	for i := range 1000 {
		p.add("a.example", by, []netip.Addr{nth(i)})
	}
	if len(p.addrs) != maxAddresses {
		t.Errorf("%d addresses are held, want %d", len(p.addrs), maxAddresses)
	}
	// Two queries may pass before either answer is pinned, so the bound is kept here too.
	for i := range maxLooseNames + 10 {
		kept := p.add("n"+strconv.Itoa(i), by, []netip.Addr{nth(i)})
		if room := i < maxLooseNames-1; (len(kept) == 1) != room {
			t.Fatalf("name %d: kept %v", i, kept)
		}
	}
	if len(p.names) != maxLooseNames {
		t.Errorf("%d names are held, want %d", len(p.names), maxLooseNames)
	}
	if kept := p.add("exact.example", cover{rules: []int{0}}, []netip.Addr{nth(0)}); len(kept) != 1 {
		t.Error("an exact rule's name has no room")
	}
}
