package egress_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stockade/sandbox/egress"
)

var comparePrefixes = cmpopts.EquateComparable(netip.Prefix{})

// parse reads a rule that the test relies on.
func parse(t testing.TB, texts ...string) []egress.Rule {
	t.Helper()
	var all []egress.Rule
	for _, text := range texts {
		rules, err := egress.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rules...)
	}
	return all
}

func TestParseRule(t *testing.T) {
	host := func(name string, first, last uint16) egress.Rule {
		return egress.Rule{Host: name, Ports: egress.Ports{First: first, Last: last}}
	}
	wild := func(name string, port uint16) egress.Rule {
		return egress.Rule{Host: name, Wildcard: true, Ports: egress.Ports{First: port, Last: port}}
	}
	block := func(prefix string, first, last uint16) egress.Rule {
		return egress.Rule{Prefix: netip.MustParsePrefix(prefix), Ports: egress.Ports{First: first, Last: last}}
	}
	long := strings.Repeat("a", 63)
	tests := []struct {
		name, text string
		want       []egress.Rule
		prints     []string
	}{
		{"bare host", "api.github.com", []egress.Rule{host("api.github.com", 443, 443)}, []string{"api.github.com:443"}},
		{"host and port", "api.github.com:22", []egress.Rule{host("api.github.com", 22, 22)}, []string{"api.github.com:22"}},
		{"port range", "a.example:8000-8100", []egress.Rule{host("a.example", 8000, 8100)}, []string{"a.example:8000-8100"}},
		{"range of one port", "a.example:80-80", []egress.Rule{host("a.example", 80, 80)}, []string{"a.example:80"}},
		{"all ports", "a.example:1-65535", []egress.Rule{host("a.example", 1, 65535)}, []string{"a.example:1-65535"}},
		{"wildcard", "*.example.com:443", []egress.Rule{wild("example.com", 443)}, []string{"*.example.com:443"}},
		{"bare wildcard", "*.example.com", []egress.Rule{wild("example.com", 443)}, []string{"*.example.com:443"}},
		{"wildcard below a top-level domain", "*.com:80", []egress.Rule{wild("com", 80)}, []string{"*.com:80"}},
		{"upper case", "API.GitHub.COM:443", []egress.Rule{host("api.github.com", 443, 443)}, []string{"api.github.com:443"}},
		{"one trailing dot", "api.github.com.:443", []egress.Rule{host("api.github.com", 443, 443)}, []string{"api.github.com:443"}},
		{"one label", "postgres:5432", []egress.Rule{host("postgres", 5432, 5432)}, []string{"postgres:5432"}},
		{"underscore", "my_db.example:5432", []egress.Rule{host("my_db.example", 5432, 5432)}, []string{"my_db.example:5432"}},
		{"hyphens in the third and fourth place", "r3---sn.example.com", []egress.Rule{host("r3---sn.example.com", 443, 443)}, []string{"r3---sn.example.com:443"}},
		{"digits first", "1e100.net", []egress.Rule{host("1e100.net", 443, 443)}, []string{"1e100.net:443"}},
		{"label of 63", long + ".example", []egress.Rule{host(long+".example", 443, 443)}, []string{long + ".example:443"}},
		{"name of 253", strings.Repeat(long+".", 3) + strings.Repeat("b", 61), []egress.Rule{host(strings.Repeat(long+".", 3)+strings.Repeat("b", 61), 443, 443)}, []string{strings.Repeat(long+".", 3) + strings.Repeat("b", 61) + ":443"}},
		{"another alphabet", "Bücher.example:443", []egress.Rule{host("xn--bcher-kva.example", 443, 443)}, []string{"xn--bcher-kva.example:443"}},
		{"its ASCII form", "XN--bcher-kva.example", []egress.Rule{host("xn--bcher-kva.example", 443, 443)}, []string{"xn--bcher-kva.example:443"}},
		{"wildcard in another alphabet", "*.例え.jp:443", []egress.Rule{wild("xn--r8jz45g.jp", 443)}, []string{"*.xn--r8jz45g.jp:443"}},
		{"full-width letters and dots", "ｇｉｔｈｕｂ。com", []egress.Rule{host("github.com", 443, 443)}, []string{"github.com:443"}},
		{"bare address", "203.0.113.9", []egress.Rule{block("203.0.113.9/32", 443, 443)}, []string{"203.0.113.9:443"}},
		{"address and port", "203.0.113.9:22", []egress.Rule{block("203.0.113.9/32", 22, 22)}, []string{"203.0.113.9:22"}},
		{"loopback", "127.0.0.1:6379", []egress.Rule{block("127.0.0.1/32", 6379, 6379)}, []string{"127.0.0.1:6379"}},
		{"metadata, written out", "169.254.169.254:80", []egress.Rule{block("169.254.169.254/32", 80, 80)}, []string{"169.254.169.254:80"}},
		{"name server", "203.0.113.9:53", []egress.Rule{block("203.0.113.9/32", 53, 53)}, []string{"203.0.113.9:53"}},
		{"block", "10.1.0.0/16:5432", []egress.Rule{block("10.1.0.0/16", 5432, 5432)}, []string{"10.1.0.0/16:5432"}},
		{"bare block", "10.1.0.0/16", []egress.Rule{block("10.1.0.0/16", 443, 443)}, []string{"10.1.0.0/16:443"}},
		{"block of one", "10.1.0.7/32:5432", []egress.Rule{block("10.1.0.7/32", 5432, 5432)}, []string{"10.1.0.7:5432"}},
		{"every IPv4 address", "0.0.0.0/0:443", []egress.Rule{block("0.0.0.0/0", 443, 443)}, []string{"0.0.0.0/0:443"}},
		{"IPv6", "[2001:db8::1]:443", []egress.Rule{block("2001:db8::1/128", 443, 443)}, []string{"[2001:db8::1]:443"}},
		{"bare IPv6", "[2001:DB8:0::1]", []egress.Rule{block("2001:db8::1/128", 443, 443)}, []string{"[2001:db8::1]:443"}},
		{"IPv6 block", "[2001:db8::/32]:1-1023", []egress.Rule{block("2001:db8::/32", 1, 1023)}, []string{"[2001:db8::/32]:1-1023"}},
		{"every IPv6 address", "[::/0]:443", []egress.Rule{block("::/0", 443, 443)}, []string{"[::/0]:443"}},
		{"localhost", "localhost:6379", []egress.Rule{block("127.0.0.1/32", 6379, 6379), block("::1/128", 6379, 6379)}, []string{"127.0.0.1:6379", "[::1]:6379"}},
		{"Localhost, odd case and dot", "LocalHost.:6379", []egress.Rule{block("127.0.0.1/32", 6379, 6379), block("::1/128", 6379, 6379)}, []string{"127.0.0.1:6379", "[::1]:6379"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := egress.ParseRule(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range tt.want {
				tt.want[i].Text = tt.text
			}
			if diff := cmp.Diff(tt.want, got, comparePrefixes); diff != "" {
				t.Error(diff)
			}
			var prints []string
			for _, r := range got {
				prints = append(prints, r.String())
			}
			if diff := cmp.Diff(tt.prints, prints); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseRuleRefuses(t *testing.T) {
	label64 := strings.Repeat("a", 64)
	name254 := strings.Repeat(strings.Repeat("a", 62)+".", 4) + "bb"
	const (
		forms = "a rule is one of HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT, PREFIX/LENGTH:PORT; IPv6 in brackets, ports from 1 to 65535, 443 when there is none"
		zeros = "has an address with leading zeros, which are ambiguous: octal to some programs, decimal to others"
		plain = "write each number without leading zeros"
	)
	tests := []struct {
		name, text, problem, hint string
	}{
		{"nothing", "", "is empty", forms},
		{"URL", "https://api.github.com/x", "is a URL", `write "api.github.com:443"`},
		{"URL with a port", "http://api.github.com:8080/x?y#z", "is a URL", `write "api.github.com:8080"`},
		{"URL of another service", "postgres://user:word@db.example/x", "is a URL", `write "db.example:5432"`},
		{"URL of an unknown service", "gopher://old.example/", "is a URL", `write the host and the port alone, as in "api.example.com:443"`},
		{"URL, IPv6", "https://[2001:db8::1]/", "is a URL", `write "[2001:db8::1]:443"`},
		{"URL with an odd address", "http://me@0x7f.1/", "is a URL", `write "127.0.0.1:80"`},
		{"user", "git@github.com:22", "names a user, which egress rules do not", `write "github.com:22"`},
		{"path", "github.com/x", "has a path, which egress rules do not", `write "github.com:443"`},
		{"path after the port", "github.com:443/x", "has a path, which egress rules do not", `write "github.com:443"`},
		{"path with a colon", "github.com/x:443", "has a path, which egress rules do not", `write "github.com:443"`},
		{"query", "github.com:443?x", "has a path, which egress rules do not", `write "github.com:443"`},
		{"space before", " github.com:443", "holds a space or a control character", `write "github.com:443"`},
		{"space within", "github.com 443", "holds a space or a control character", forms},
		{"line end", "github.com:443\nevil.example", "holds a space or a control character", forms},
		{"null", "github.com\x00.evil.example", "holds a space or a control character", forms},
		{"not UTF-8", "gith\xffub.com", "is not UTF-8", forms},
		{"comma", "a.example,b.example", "holds ',', which no host name has", forms},

		{"hexadecimal", "0x7f.1", "has an address in an odd spelling", `write "127.0.0.1:443"`},
		{"one hexadecimal number", "0x7F000001:80", "has an address in an odd spelling", `write "127.0.0.1:80"`},
		{"one number", "2130706433", "has an address in an odd spelling", `write "127.0.0.1:443"`},
		{"two parts", "127.1", "has an address in an odd spelling", `write "127.0.0.1:443"`},
		{"three parts", "1.2.3", "has an address in an odd spelling", `write "1.2.0.3:443"`},
		{"octal", "0177.0.0.1", zeros, plain},
		{"leading zeros", "010.0.0.1", zeros, plain},
		{"leading zeros, no octal", "009.0.0.1:80", zeros, plain},
		{"leading zeros in a block", "010.0.0.0/8:443", zeros, plain},
		{"address with a trailing dot", "127.0.0.1.", "has an address in an odd spelling", `write "127.0.0.1:443"`},
		{"full-width address", "１２７.０.０.１", "has an address in an odd spelling", `write "127.0.0.1:443"`},
		{"circled address", "①②⑦.⓪.⓪.①:80", "has an address in an odd spelling", `write "127.0.0.1:80"`},
		{"too large", "256.1.1.1", "is no IPv4 address: its numbers are from 0 to 255", forms},
		{"five parts", "1.2.3.4.5", "ends in a number, and resolvers read it as an address", forms},
		{"name that ends in a number", "host.42", "ends in a number, and resolvers read it as an address", forms},
		{"name that ends in a hexadecimal number", "host.0xa", "ends in a number, and resolvers read it as an address", forms},
		{"name that ends in an empty hexadecimal number", "host.0x", "ends in a number, and resolvers read it as an address", forms},
		{"wildcard below a number", "*.1.2.3", "ends in a number, and resolvers read it as an address", forms},

		{"IPv6 without brackets", "2001:db8::1", "has an IPv6 address without brackets", `write "[2001:db8::1]:443"`},
		{"full IPv6 without brackets, and a port", "2001:db8:0:0:0:0:0:1:80", "has an IPv6 address without brackets", `write "[2001:db8::1]:80"`},
		{"IPv6 without brackets, or its port", "::1:8080", "has an IPv6 address without brackets", `write "[::1]:8080", or "[::1:8080]:443" if all of it is the address`},
		{"IPv6 block without brackets", "2001:db8::/32:80", "has an IPv6 address without brackets", `write "[2001:db8::/32]:80"`},
		{"two colons", "a.example:80:90", "has more than one colon", `write one host and its port or port range, as in "api.example.com:443"`},
		{"no closing bracket", "[2001:db8::1", "has no ] to its [", forms},
		{"more after the bracket", "[2001:db8::1]80", "has more than a port after the ]", `write "[2001:db8::1]:443"`},
		{"name in brackets", "[a.example]:443", "has no IPv6 address in its brackets", `write "a.example:443"`},
		{"IPv4 in brackets", "[10.0.0.1]:443", "has an IPv4 address in brackets", `write "10.0.0.1:443"`},
		{"zone", "[fe80::1%eth0]:443", "has a zone, which is another one on each machine", `write "[fe80::1]:443"`},
		{"zone in a block", "[fe80::%eth0/64]:443", "has a zone, which is another one on each machine", `write "[fe80::/64]:443"`},
		{"mapped", "[::ffff:10.0.0.1]:443", "has an IPv4 address inside an IPv6 one", `write "10.0.0.1:443"`},
		{"mapped in hexadecimal", "[::ffff:a00:1]:443", "has an IPv4 address inside an IPv6 one", `write "10.0.0.1:443"`},
		{"mapped block", "[::ffff:10.1.0.0/112]:80", "has an IPv4 address inside an IPv6 one", `write "10.1.0.0/16:80"`},
		{"all mapped addresses", "[::ffff:0:0/96]:80", "has an IPv4 address inside an IPv6 one", `write "0.0.0.0/0:80"`},

		{"host bits", "10.1.2.3/16:5432", "has bits set beyond the first 16", `write "10.1.0.0/16:5432"`},
		{"host bits, IPv6", "[2001:db8::1/32]:443", "has bits set beyond the first 32", `write "[2001:db8::/32]:443"`},
		{"prefix length above 32", "10.0.0.0/33:443", "has a prefix length that is not a number from 0 to 32", forms},
		{"prefix length above 128", "[2001:db8::/129]:443", "has a prefix length that is not a number from 0 to 128", forms},
		{"prefix length with a zero", "10.0.0.0/08:443", "has a prefix length that is not a number from 0 to 32", forms},
		{"no prefix length", "10.0.0.0/:443", "has a prefix length that is not a number from 0 to 32", forms},
		{"mask", "10.0.0.0/255.0.0.0:443", "has a prefix length that is not a number from 0 to 32", forms},
		{"odd block", "0x0a.0/8:443", "has an address in an odd spelling", `write "10.0.0.0/8:443"`},

		{"every host", "*", "names every host", `write "egress: public" for every public address, or "*.example.com:443" for every name below one`},
		{"every host on a port", "*:443", "names every host", `write "egress: public" for every public address, or "*.example.com:443" for every name below one`},
		{"wildcard in the middle", "a.*.b", "has a * that is not the whole first label", `write "*.example.com:443" for every name below example.com, or name each host`},
		{"wildcard in a label", "*api.example.com", "has a * that is not the whole first label", `write "*.example.com:443" for every name below example.com, or name each host`},
		{"two wildcards", "*.*.example.com", "has a * that is not the whole first label", `write "*.example.com:443" for every name below example.com, or name each host`},
		{"leading dot", ".example.com:80", "begins with a dot", `write "*.example.com:80"`},
		{"bare wildcard", "*.:80", "names no host", forms},
		{"port alone", ":443", "names no host", forms},
		{"port without a colon", "443", "is a port alone, which is no rule", `write the host before it, as in "api.example.com:443"`},
		{"two ports", "a.example:443,80", "has a port that is no number", forms},
		{"dot alone", ".", "names no host", forms},

		{"port 0", "a.example:0", "has port 0, which is none", forms},
		{"port 65536", "a.example:65536", "has a port above 65535", forms},
		{"port 65616, which is 80 in 16 bits", "a.example:65616", "has a port above 65535", forms},
		{"port beyond 64 bits", "a.example:18446744073709551659", "has a port above 65535", forms},
		{"no port", "a.example:", "lacks a port", `write "a.example:443"`},
		{"negative port", "a.example:-1", "lacks a port", forms},
		{"signed port", "a.example:+443", "has a port that is no number", forms},
		{"hexadecimal port", "a.example:0x50", "has a port that is no number", forms},
		{"full-width port", "a.example:８０", "has a port that is no number", forms},
		{"service", "a.example:https", "has a port that is no number", `write "a.example:443"`},
		{"any port", "a.example:*", "has a port that is no number", `write "a.example:1-65535"`},
		{"leading zero", "a.example:0443", "has a port with a leading zero", `write "a.example:443"`},
		{"reversed range", "a.example:90-80", "has a port range that ends before it begins", `write "a.example:80-90"`},
		{"range from 0", "a.example:0-80", "has port 0, which is none", `write "a.example:1-80"`},
		{"open range", "a.example:80-", "lacks a port", forms},
		{"three ends", "a.example:80-90-95", "has a port that is no number", forms},
		{"range on IPv6, reversed", "[2001:db8::1]:90-80", "has a port range that ends before it begins", `write "[2001:db8::1]:80-90"`},

		{"label of 64", label64 + ".example", "has a label of 64 characters, a label has at most 63", forms},
		{"name of 254", name254, "has 254 characters, a name has at most 253", forms},
		{"empty label", "a..example", "has an empty label: two dots, or one at an end", forms},
		{"two trailing dots", "a.example..", "has an empty label: two dots, or one at an end", forms},
		{"hyphen first", "-a.example", `has the label "-a", which begins or ends with a hyphen`, forms},
		{"hyphen last", "a-.example", `has the label "a-", which begins or ends with a hyphen`, forms},
		{"percent", "a%2eexample", "holds '%', which no host name has", forms},
		{"no punycode", "xn--\u00fc.example", "has no ASCII form (IDNA)", forms},
		{"punycode of nothing", "xn--a.example", `has the label "xn--a", which stands for no text (IDNA)`, forms},
		{"punycode of ASCII", "xn--abc-.example", `has the label "xn--abc-", which begins or ends with a hyphen`, forms},
		{"mixed directions", "a\u05d0.example", "has no ASCII form (IDNA)", forms},

		{"name below localhost", "app.localhost:3000", "is a name of this machine, which host rules do not reach", `write "localhost:3000"`},
		{"names below localhost", "*.localhost:3000", "is a name of this machine, which host rules do not reach", `write "localhost:3000"`},
		{"metadata name", "metadata.google.internal:80", "is a cloud's metadata service, which host rules do not reach", `write its address, as in "169.254.169.254:80", if the server may have this machine's cloud credentials`},
		{"short metadata name", "Metadata.:80", "is a cloud's metadata service, which host rules do not reach", `write its address, as in "169.254.169.254:80", if the server may have this machine's cloud credentials`},
		{"name server by name", "dns.example:53", "is port 53 of a host, where stockade answers by itself", `write the address of the name server, as in "203.0.113.9:53"`},
		{"very long", strings.Repeat("a.", 1000), "has 2000 characters", forms},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rules, err := egress.ParseRule(tt.text)
			if rules != nil {
				t.Errorf("got rules %v beside the error", rules)
			}
			wrong, is := errors.AsType[*egress.RuleError](err)
			if !is {
				t.Fatalf("got %v, want a *RuleError", err)
			}
			want := egress.RuleError{Text: tt.text, Problem: tt.problem, Hint: tt.hint}
			if diff := cmp.Diff(want, *wrong); diff != "" {
				t.Error(diff)
			}
			if message := err.Error(); strings.ContainsFunc(message, func(r rune) bool { return r < ' ' }) || len(message) > 600 {
				t.Errorf("the message is no short printable line: %q", message)
			}
		})
	}
}

func TestWithin(t *testing.T) {
	pinned := func(r egress.Rule) egress.Rule { r.Names = egress.Pinned; return r }
	anywhere := func(r egress.Rule) egress.Rule { r.Addresses = egress.AnyAddress; return r }
	rule := func(text string) egress.Rule { return parse(t, text)[0] }
	tests := []struct {
		name        string
		inner, from egress.Rule
		want        bool
	}{
		{"same host", rule("a.example:443"), rule("a.example:443"), true},
		{"port in a range", rule("a.example:443"), rule("a.example:400-500"), true},
		{"range and one port", rule("a.example:400-500"), rule("a.example:443"), false},
		{"range that begins before", rule("a.example:399-500"), rule("a.example:400-500"), false},
		{"range that ends after", rule("a.example:400-501"), rule("a.example:400-500"), false},
		{"another host", rule("a.example:443"), rule("b.example:443"), false},
		{"host below a wildcard", rule("a.example:443"), rule("*.example:443"), true},
		{"host and its wildcard", rule("a.example:443"), rule("*.a.example:443"), false},
		{"look-alike of a wildcard", rule("evila.example:443"), rule("*.a.example:443"), false},
		{"wildcard and a host", rule("*.a.example:443"), rule("a.example:443"), false},
		{"wildcard and itself", rule("*.a.example:443"), rule("*.a.example:443"), true},
		{"wildcard and a wider one", rule("*.a.example:443"), rule("*.example:443"), true},
		{"wildcard and a narrower one", rule("*.example:443"), rule("*.a.example:443"), false},
		{"pinned and strict", pinned(rule("a.example:443")), rule("a.example:443"), false},
		{"strict and pinned", rule("a.example:443"), pinned(rule("a.example:443")), true},
		{"any address and ordinary ones", anywhere(rule("a.example:443")), rule("a.example:443"), false},
		{"ordinary addresses and any", rule("a.example:443"), anywhere(rule("a.example:443")), true},
		{"any address below a wildcard", anywhere(rule("a.example:443")), rule("*.example:443"), false},
		{"any address below a wildcard with any", anywhere(rule("a.example:443")), anywhere(rule("*.example:443")), true},
		{"any address, pinned, and strict", anywhere(pinned(rule("a.example:443"))), anywhere(rule("a.example:443")), false},
		{"same block", rule("10.0.0.0/8:443"), rule("10.0.0.0/8:443"), true},
		{"smaller block", rule("10.1.0.0/16:443"), rule("10.0.0.0/8:443"), true},
		{"larger block with the same first address", rule("10.0.0.0/8:443"), rule("10.0.0.0/16:443"), false},
		{"larger block", rule("10.0.0.0/8:443"), rule("10.1.0.0/16:443"), false},
		{"block beside", rule("10.1.0.0/16:443"), rule("10.2.0.0/16:443"), false},
		{"IPv4 and every IPv6 address", rule("10.1.0.0/16:443"), rule("[::/0]:443"), false},
		{"IPv6 and every IPv4 address", rule("[2001:db8::/32]:443"), rule("0.0.0.0/0:443"), false},
		{"host and every address", rule("a.example:443"), rule("0.0.0.0/0:443"), false},
		{"address and a wildcard", rule("10.1.0.0/16:443"), rule("*.example:443"), false},
		{"nothing and everything", egress.Rule{}, rule("0.0.0.0/0:1-65535"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.inner.Within(tt.from); got != tt.want {
				t.Errorf("%v within %v: got %v, want %v", tt.inner, tt.from, got, tt.want)
			}
		})
	}
}

func TestWide(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"host", "api.github.com:443", ""},
		{"wildcard", "*.example.com:443", ""},
		{"top-level domain", "*.com:443", "holds every name below the top-level domain com"},
		{"strangers", "*.github.io:443", "anybody can have a name below github.io"},
		{"strangers further down", "*.s3.eu-west-1.amazonaws.com:443", "anybody can have a name below amazonaws.com"},
		{"above strangers", "*.core.windows.net:443", "anybody can have a name below windows.net"},
		{"look-alike", "*.notgithub.io:443", ""},
		{"address", "169.254.169.254:80", ""},
		{"private block", "10.1.0.0/16:5432", ""},
		{"whole private block", "10.0.0.0/8:5432", ""},
		{"multicast block", "[ff02::/16]:5353", ""},
		{"public block", "8.8.8.0/24:443", ""},
		{"public IPv6 block", "[2606:4700::/32]:443", ""},
		{"more than a private block", "10.0.0.0/7:443", "holds special addresses: private"},
		{"block that holds a private one", "8.0.0.0/6:443", "holds special addresses: private"},
		{"link-local", "169.254.0.0/16:80", "holds special addresses: cloud metadata, link-local"},
		{"unique local", "[fc00::/7]:80", "holds special addresses: cloud metadata, unique local"},
		{"half", "128.0.0.0/1:443", "holds special addresses: cloud metadata, link-local, private, IPv4 service continuity, dummy address, port control anycast, relay anycast, NAT64 discovery, IETF protocol assignments, documentation, 6a44 relay anycast, 6to4 relay anycast, benchmarking, multicast, broadcast, reserved"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parse(t, tt.text)[0].Wide(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestWideAddresses: what a wildcard with any address opens is said beside what it opens anyway.
func TestWideAddresses(t *testing.T) {
	for text, want := range map[string]string{
		"nexus.corp.example:443": "",
		"*.corp.example:443":     "lets whoever answers for corp.example lead to this machine and its networks, on port 443",
		"*.corp.example:1-1024":  "lets whoever answers for corp.example lead to this machine and its networks, on ports 1-1024",
		"*.github.io:443":        "lets whoever answers for github.io lead to this machine and its networks, on port 443; anybody can have a name below github.io",
	} {
		r := parse(t, text)[0]
		r.Addresses = egress.AnyAddress
		if got := r.Wide(); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func TestWords(t *testing.T) {
	got := []string{
		egress.Strict.String(), egress.Pinned.String(), egress.Names(9).String(), egress.Ordinary.String(), egress.AnyAddress.String(), egress.Addresses(9).String(), egress.List.String(), egress.Public.String(), egress.Mode(9).String(),
		egress.Refused.String(), egress.Direct.String(), egress.Relayed.String(), egress.Resolver.String(), egress.Verdict(9).String(),
	}
	want := []string{"strict", "pinned", "unknown", "ordinary", "any", "unknown", "list", "public", "unknown", "refused", "direct", "relayed", "resolver", "unknown"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
