package egress

import (
	"net/netip"
	"testing"
)

// TestSpecialRows keeps the table in an order in which each row decides on something, and its
// prefixes in the form that lookup compares.
func TestSpecialRows(t *testing.T) {
	var before []netip.Prefix
	for _, b := range specialBlocks {
		prefix, err := netip.ParsePrefix(b.text)
		if err != nil {
			t.Fatal(err)
		}
		if prefix.Masked() != prefix {
			t.Errorf("%v has bits set beyond its length", prefix)
		}
		if b.name == "" || b.source == "" {
			t.Errorf("%v has no name or no source", prefix)
		}
		for _, earlier := range before {
			if earlier.Bits() <= prefix.Bits() && earlier.Contains(prefix.Addr()) {
				t.Errorf("%v stands after %v, which decides on all of it", prefix, earlier)
			}
		}
		before = append(before, prefix)
	}
}
