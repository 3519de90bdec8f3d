package nettest_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"stockade/nettest"
)

// want judges one outcome of a client: "" when it is what the test wants, else what is wrong.
type want func(c client, o outcome) string

// page wants the page of a place, asked for as host.
func page(host string, places ...nettest.Place) want {
	return func(_ client, o outcome) string {
		for _, p := range places {
			if o.OK && strings.Contains(o.Text, nettest.Greeting(p, host)) {
				return ""
			}
		}
		return fmt.Sprintf("want the page of %s at %v", host, places)
	}
}

// echoed wants the word back that clients send.
func echoed(_ client, o outcome) string {
	if o.OK && o.Text == "ping" {
		return ""
	}
	return "want the word that was sent"
}

// told wants a name server's answer: its code, and the number of records.
func told(rcode, answers int) want {
	text := fmt.Sprintf("rcode %d answers %d", rcode, answers)
	return func(_ client, o outcome) string {
		if o.OK && o.Text == text {
			return ""
		}
		return "want " + text
	}
}

// found wants the addresses of places, in any order and no other.
func found(places ...nettest.Place) want {
	return func(_ client, o outcome) string {
		var addresses []netip.Addr
		for _, p := range places {
			addresses = append(addresses, nettest.Address(p))
		}
		if o.OK && sameAddresses(strings.Fields(o.Text), addresses) {
			return ""
		}
		return fmt.Sprintf("want the addresses %v", addresses)
	}
}

func sameAddresses(got []string, want []netip.Addr) bool {
	have := map[netip.Addr]bool{}
	for _, text := range got {
		address, err := netip.ParseAddr(text)
		if err != nil || !slices.Contains(want, address) {
			return false
		}
		have[address] = true
	}
	return len(have) == len(want)
}

// fails wants a failure with one of the client's own codes.
func fails(kinds ...func(f failures) string) want {
	return func(c client, o outcome) string {
		var codes []string
		for _, kind := range kinds {
			codes = append(codes, kind(c.failures))
		}
		if !o.OK && slices.Contains(codes, o.Code) {
			return ""
		}
		return fmt.Sprintf("want the failure %q", codes)
	}
}

// barred wants what the relay does to a client that names a host which nobody allows: a TLS
// connection ends, and plain HTTP has words for it.
func barred(c client, o outcome) string {
	if c.scheme == "https" {
		return fails(reset)(c, o)
	}
	if o.OK && strings.HasPrefix(o.Text, "HTTP/1.1 403 ") && strings.Contains(o.Text, "blocked by profile") {
		return ""
	}
	return "want status 403 from the relay"
}

// The kinds of failures.
func noName(f failures) string { return f.noName }
func noData(f failures) string { return f.noData }
func denied(f failures) string { return f.denied }
func reset(f failures) string  { return f.reset }
func unsent(f failures) string { return f.unsent }
