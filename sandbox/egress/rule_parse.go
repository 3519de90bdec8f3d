package egress

import (
	"net/netip"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// defaultPort is that of a rule that names none.
const defaultPort = "443"

// maxText bounds a rule: the longest name, a port range, and room for a mistake to be told.
const maxText = 1024

// What "localhost" in a rule stands for.
var (
	loopback4 = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	loopback6 = netip.IPv6Loopback()
)

// RuleError is an entry that is no rule.
type RuleError struct {
	Text    string // the entry as written
	Problem string // what is wrong, to follow the entry: `is a URL`
	Hint    string // what to write instead: `write "api.github.com:443"`, or which forms there are
}

// Error returns the quoted entry and what is wrong with it, without the hint.
func (e *RuleError) Error() string { return "egress rule " + quoted(e.Text) + " " + e.Problem }

// forms is the hint when nobody can tell what was meant.
const forms = "a rule is one of HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT, PREFIX/LENGTH:PORT; IPv6 in brackets, ports from 1 to 65535, 443 when there is none"

// fault is what is wrong with a text, and what its writer may have meant.
type fault struct {
	problem string
	meant   string // a rule that may be what was meant; shown if it can be read
	advice  string // the hint when there is no such rule
}

// ParseRule reads one entry of network.egress: "host", "host:443", "host:8000-8100",
// "*.example.com:443", "203.0.113.9:443", "[2001:db8::1]:443", "10.1.0.0/16:5432",
// "[2001:db8::/32]:443". Without a port it is 443. "localhost:6379" is two address rules,
// 127.0.0.1 and ::1. Names are given in lower case and ASCII (IDNA), without the trailing
// dot they may be written with.
//
// Other spellings are a [*RuleError]: schemes, paths, users, zones, addresses with octal,
// hexadecimal or missing parts, IPv4 addresses inside IPv6 ones, prefixes with bits set
// beyond their length. So are rules that can have no effect: host rules for names of cloud
// metadata services, and for port 53, where the stub answers.
func ParseRule(text string) ([]Rule, error) {
	rules, wrong := parse(text)
	if wrong == nil {
		return rules, nil
	}
	e := &RuleError{Text: text, Problem: wrong.problem, Hint: wrong.advice}
	// A text can be wrong in several ways; each step mends one.
	for range 6 {
		if wrong.meant == "" {
			break
		}
		candidate := wrong.meant
		if rules, wrong = parse(candidate); wrong != nil {
			continue
		}
		if len(rules) == 1 {
			candidate = rules[0].String()
		}
		e.Hint = "write " + strconv.Quote(candidate)
		break
	}
	if e.Hint == "" {
		e.Hint = forms
	}
	return nil, e
}

func parse(text string) ([]Rule, *fault) {
	switch {
	case text == "":
		return nil, &fault{problem: "is empty", advice: forms}
	case len(text) > maxText:
		return nil, &fault{problem: "has " + strconv.Itoa(len(text)) + " characters"}
	case !utf8.ValidString(text):
		return nil, &fault{problem: "is not UTF-8"}
	case strings.ContainsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }):
		return nil, &fault{problem: "holds a space or a control character", meant: strings.TrimSpace(text)}
	}
	if scheme, rest, is := strings.Cut(text, "://"); is {
		return nil, &fault{problem: "is a URL", meant: fromURL(scheme, rest), advice: `write the host and the port alone, as in "api.example.com:443"`}
	}
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		return nil, &fault{problem: "names a user, which egress rules do not", meant: text[at+1:]}
	}
	if isPort(text) {
		return nil, &fault{problem: "is a port alone, which is no rule", advice: `write the host before it, as in "api.example.com:` + text + `"`}
	}
	target, portText, wrong := split(text)
	if wrong != nil {
		return nil, wrong
	}
	ports, wrong := parsePorts(portText, target)
	if wrong != nil {
		return nil, wrong
	}
	rule := Rule{Ports: ports, Text: text}
	if strings.HasPrefix(target, "[") || strings.Contains(target, "/") {
		if rule.Prefix, wrong = parseBlock(target, portText); wrong != nil {
			return nil, wrong
		}
		return []Rule{rule}, nil
	}
	if addr, err := netip.ParseAddr(target); err == nil {
		rule.Prefix = netip.PrefixFrom(addr, addr.BitLen())
		return []Rule{rule}, nil
	}
	return parseHost(rule, target, portText)
}

// split parts an entry into what it names, with brackets, and its ports as written.
func split(text string) (target, ports string, wrong *fault) {
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']')
		if end < 0 {
			return "", "", &fault{problem: "has no ] to its ["}
		}
		target, rest := text[:end+1], text[end+1:]
		if rest == "" {
			return target, defaultPort, nil
		}
		ports, is := strings.CutPrefix(rest, ":")
		if !is {
			return "", "", &fault{problem: "has more than a port after the ]", meant: target}
		}
		return withoutPath(target, ports)
	}
	switch strings.Count(text, ":") {
	case 0:
		return text, defaultPort, nil
	case 1:
		target, ports, _ := strings.Cut(text, ":")
		if strings.Contains(target, "/") && !isAddress(target[:strings.IndexByte(target, '/')]) {
			return "", "", &fault{problem: "has a path, which egress rules do not", meant: target[:strings.IndexByte(target, '/')]}
		}
		return withoutPath(target, ports)
	}
	// Where an IPv6 address ends and the port begins is anybody's guess, so none is made: what
	// can be read both ways gets both hints, the port first.
	last := strings.LastIndexByte(text, ':')
	if isBlock6(text) && isBlock6(text[:last]) && isPort(text[last+1:]) {
		return "", "", &fault{
			problem: "has an IPv6 address without brackets",
			advice:  "write " + strconv.Quote("["+text[:last]+"]"+text[last:]) + ", or " + strconv.Quote("["+text+"]:"+defaultPort) + " if all of it is the address",
		}
	}
	if isBlock6(text) {
		return "", "", &fault{problem: "has an IPv6 address without brackets", meant: "[" + text + "]:" + defaultPort}
	}
	if isBlock6(text[:last]) {
		return "", "", &fault{problem: "has an IPv6 address without brackets", meant: "[" + text[:last] + "]" + text[last:]}
	}
	return "", "", &fault{problem: "has more than one colon", advice: `write one host and its port or port range, as in "api.example.com:443"`}
}

func withoutPath(target, ports string) (string, string, *fault) {
	if slash := strings.IndexAny(ports, "/?#"); slash >= 0 {
		return "", "", &fault{problem: "has a path, which egress rules do not", meant: target + ":" + ports[:slash]}
	}
	return target, ports, nil
}

// isAddress tells whether text is an address in any spelling, odd ones included.
func isAddress(text string) bool {
	_, odd := oddAddress(text)
	return odd
}

// isPort tells whether text is a port in its only spelling.
func isPort(text string) bool {
	_, wrong := parsePort(text)
	return wrong == nil
}

// zeros tells whether a number of an address has a leading zero: octal to inet_aton(3),
// decimal to people and to many programs.
func zeros(text string) bool {
	for part := range strings.SplitSeq(text, ".") {
		if len(part) > 1 && part[0] == '0' && part[1] != 'x' && part[1] != 'X' {
			return true
		}
	}
	return false
}

// oddSpelling is the fault of an address that only some programs read, and as what.
func oddSpelling(text string, odd netip.Addr, rest string) *fault {
	if zeros(text) {
		return &fault{
			problem: "has an address with leading zeros, which are ambiguous: octal to some programs, decimal to others",
			advice:  "write each number without leading zeros",
		}
	}
	return &fault{problem: "has an address in an odd spelling", meant: odd.String() + rest}
}

func isBlock6(text string) bool {
	addr, bits, _ := strings.Cut(text, "/")
	parsed, err := netip.ParseAddr(addr)
	return err == nil && parsed.Is6() && !strings.Contains(bits, ":")
}

// parseBlock reads "[v6]", "[v6/bits]" and "v4/bits".
func parseBlock(target, ports string) (netip.Prefix, *fault) {
	inner, six := strings.CutPrefix(target, "[")
	inner = strings.TrimSuffix(inner, "]")
	text, bits, block := strings.Cut(inner, "/")
	if bare, _, zone := strings.Cut(text, "%"); zone {
		return netip.Prefix{}, &fault{problem: "has a zone, which is another one on each machine", meant: "[" + bare + strings.TrimPrefix(inner, text) + "]:" + ports}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		if odd, is := oddAddress(text); is && block {
			return netip.Prefix{}, oddSpelling(text, odd, "/"+bits+":"+ports)
		}
		if six {
			return netip.Prefix{}, &fault{problem: "has no IPv6 address in its brackets", meant: inner + ":" + ports}
		}
		return netip.Prefix{}, &fault{problem: "has a path, which egress rules do not", meant: text + ":" + ports}
	}
	if six && addr.Is4() {
		return netip.Prefix{}, &fault{problem: "has an IPv4 address in brackets", meant: inner + ":" + ports}
	}
	length := addr.BitLen()
	if block {
		prefix, err := netip.ParsePrefix(inner)
		if err != nil {
			return netip.Prefix{}, &fault{problem: "has a prefix length that is not a number from 0 to " + strconv.Itoa(length)}
		}
		length = prefix.Bits()
	}
	prefix := netip.PrefixFrom(addr, length)
	if addr.Is4In6() {
		if length < 96 {
			return netip.Prefix{}, &fault{problem: "has an IPv4 address inside an IPv6 one"}
		}
		four := netip.PrefixFrom(addr.Unmap(), length-96)
		return netip.Prefix{}, &fault{problem: "has an IPv4 address inside an IPv6 one", meant: four.String() + ":" + ports}
	}
	if masked := prefix.Masked(); masked != prefix {
		meant := masked.String() + ":" + ports
		if six {
			meant = "[" + masked.String() + "]:" + ports
		}
		return netip.Prefix{}, &fault{problem: "has bits set beyond the first " + strconv.Itoa(length), meant: meant}
	}
	return prefix, nil
}

// decimal4 tells whether text is four decimal numbers with dots, of any size.
func decimal4(text string) bool {
	return strings.Count(text, ".") == 3 && strings.Trim(text, "0123456789.") == "" && !strings.Contains(text, "..")
}

// parseHost reads a name, with or without "*." before it.
func parseHost(rule Rule, target, ports string) ([]Rule, *fault) {
	if target == "*" {
		return nil, &fault{problem: "names every host", advice: `write "egress: public" for every public address, or "*.example.com:443" for every name below one`}
	}
	name, wildcard := strings.CutPrefix(target, "*.")
	if strings.Contains(name, "*") {
		return nil, &fault{problem: "has a * that is not the whole first label", advice: `write "*.example.com:443" for every name below example.com, or name each host`}
	}
	if strings.Trim(name, ".") == "" {
		return nil, &fault{problem: "names no host"}
	}
	if rest, is := strings.CutPrefix(name, "."); is && !wildcard {
		return nil, &fault{problem: "begins with a dot", meant: "*." + rest + ":" + ports}
	}
	host, problem := writtenName(name)
	if problem != "" {
		meant := ""
		if odd, is := oddAddress(name); is {
			meant = odd.String() + ":" + ports
		}
		return nil, &fault{problem: problem, meant: meant}
	}
	if endsInNumber(host) {
		if odd, is := oddAddress(host); is && !wildcard {
			return nil, oddSpelling(host, odd, ":"+ports)
		}
		if decimal4(host) {
			if zeros(host) {
				return nil, oddSpelling(host, netip.Addr{}, "")
			}
			return nil, &fault{problem: "is no IPv4 address: its numbers are from 0 to 255"}
		}
		return nil, &fault{problem: "ends in a number, and resolvers read it as an address"}
	}
	switch {
	case host == "localhost" && !wildcard:
		four, six := rule, rule
		four.Prefix, six.Prefix = netip.PrefixFrom(loopback4, 32), netip.PrefixFrom(loopback6, 128)
		return []Rule{four, six}, nil
	case localName(host):
		return nil, &fault{problem: "is a name of this machine, which host rules do not reach", meant: "localhost:" + ports}
	case isMetadataName(host):
		return nil, &fault{
			problem: "is a cloud's metadata service, which host rules do not reach",
			advice:  `write its address, as in "169.254.169.254:80", if the server may have this machine's cloud credentials`,
		}
	case rule.Ports == Ports{dnsPort, dnsPort}:
		return nil, &fault{
			problem: "is port 53 of a host, where stockade answers by itself",
			advice:  `write the address of the name server, as in "203.0.113.9:53"`,
		}
	}
	rule.Host, rule.Wildcard = host, wildcard
	return []Rule{rule}, nil
}
