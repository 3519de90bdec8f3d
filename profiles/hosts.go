package profiles

import (
	"net/netip"
	"strings"
)

// checkHost judges one egress rule, HOST:PORT, and returns it in its normal form: lower
// case, without a trailing dot, addresses in their shortest spelling. A host is a name, a
// name with *. before it, an address, or a network in CIDR form.
func checkHost(s string) (string, *problem) {
	const form = `write HOST:PORT, such as "api.github.com:443"`
	switch {
	case strings.Contains(s, "://"):
		return "", wrong(form, "%q is a URL", s)
	case strings.ContainsAny(s, " \t\n\x00@"):
		return "", wrong(form, "%q is not a host and a port", s)
	}
	host, port, bad := splitHost(s)
	if bad != nil {
		return "", bad
	}
	if port == "*" {
		return "", wrong("list each port", "%q: a rule names one port", s)
	}
	if _, bad := checkPort(port); bad != nil {
		return "", wrong(bad.hint, "%q: %s", s, bad.message)
	}
	address, bad := checkAddress(host)
	switch {
	case bad != nil:
		return "", wrong(bad.hint, "%q: %s", s, bad.message)
	case address != "":
		return address + ":" + port, nil
	}
	name, bad := checkHostName(host)
	if bad != nil {
		return "", wrong(bad.hint, "%q: %s", s, bad.message)
	}
	return name + ":" + port, nil
}

// splitHost cuts a rule at the colon before its port. Brackets hold an IPv6 address.
func splitHost(s string) (host, port string, bad *problem) {
	const form = `write HOST:PORT, such as "api.github.com:443"`
	if strings.HasPrefix(s, "[") {
		end := strings.LastIndexByte(s, ']')
		if end < 0 || !strings.HasPrefix(s[end+1:], ":") {
			return "", "", wrong(`write [ADDRESS]:PORT, such as "[2001:db8::1]:443"`, "%q is not an address and a port", s)
		}
		return s[:end+1], s[end+2:], nil
	}
	cut := strings.LastIndexByte(s, ':')
	switch {
	case cut < 0:
		return "", "", wrong(form, "%q has no port", s)
	case strings.Contains(s[:cut], ":"):
		return "", "", wrong(`put the address in brackets: "[2001:db8::1]:443"`, "%q is an IPv6 address without brackets", s)
	case cut == 0:
		return "", "", wrong(form, "%q has no host", s)
	}
	if slash := strings.IndexByte(s[cut:], '/'); slash >= 0 {
		return "", "", wrong("leave out what comes after the port", "%q names a path", s)
	}
	return s[:cut], s[cut+1:], nil
}

// checkAddress reads an address or network. It returns "" for what is a name.
func checkAddress(host string) (string, *problem) {
	six := strings.HasPrefix(host, "[")
	text := strings.Trim(host, "[]")
	_, _, network := strings.Cut(text, "/")
	if !six && !network && !looksNumeric(text) {
		return "", nil
	}
	var addr netip.Addr
	var rest string
	if network {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return "", wrong("a network is ADDRESS/BITS, such as 10.1.0.0/16", "not an address or network")
		}
		if prefix != prefix.Masked() {
			return "", wrong("write "+prefix.Masked().String(), "the address lies inside the network, it does not name it")
		}
		if prefix.Bits() == 0 {
			return "", wrong(`write "egress: public" or "egress: all"`, "the network is every address")
		}
		addr, rest = prefix.Addr(), text[strings.IndexByte(text, '/'):]
	} else {
		var err error
		if addr, err = netip.ParseAddr(text); err != nil {
			return "", wrong("write the usual form, such as 192.0.2.1", "not an address")
		}
	}
	switch {
	case addr.Zone() != "":
		return "", wrong("leave out the part from %", "addresses with a zone are not read")
	case addr.Is4In6():
		return "", wrong("write the IPv4 address", "an IPv4 address in IPv6 form")
	case addr.Is6() != six:
		return "", wrong("only IPv6 addresses stand in brackets", "the brackets do not fit the address")
	case six:
		return "[" + addr.String() + rest + "]", nil
	}
	return addr.String() + rest, nil
}

// looksNumeric tells whether a host would be taken for an address by some program: its
// last part is a number, in decimal or hexadecimal. Such a text is an address or an error,
// never a name: 127.1 and 0x7f.1 are loopback to many.
func looksNumeric(host string) bool {
	last := strings.TrimSuffix(host, ".")
	last = last[strings.LastIndexByte(last, '.')+1:]
	if strings.HasPrefix(last, "0x") || strings.HasPrefix(last, "0X") {
		return true
	}
	return isDigits(last)
}

// checkHostName judges a DNS name of letters, digits, dashes and underscores.
func checkHostName(host string) (string, *problem) {
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	rest, wild := strings.CutPrefix(name, "*.")
	switch {
	case name == "" || rest == "":
		return "", wrong("", "the host is empty")
	case name == "*":
		return "", wrong(`write "egress: public" or "egress: all"`, "the host is every host")
	case strings.Contains(rest, "*"):
		return "", wrong(`write "*.example.com"`, "a * stands for whole names, at the beginning")
	case wild && !strings.Contains(rest, "."):
		return "", wrong(`write at least two names behind it, such as "*.example.com"`, "a * for everything below %q", rest)
	case len(name) > 253:
		return "", wrong("", "the host is longer than 253 letters")
	}
	for label := range strings.SplitSeq(rest, ".") {
		if bad := checkLabel(label); bad != nil {
			return "", bad
		}
	}
	return name, nil
}

func checkLabel(label string) *problem {
	switch {
	case label == "":
		return wrong("", "the host has an empty part between dots")
	case len(label) > 63:
		return wrong("", "a part of the host is longer than 63 letters")
	case label[0] == '-' || label[len(label)-1] == '-':
		return wrong("", "a part of the host begins or ends with a dash")
	}
	for i := range len(label) {
		c := label[i]
		if c >= 0x80 {
			return wrong("write the name in its xn-- form", "the host has letters beyond ASCII")
		}
		if !letter(c) && !digit(c) && c != '-' && c != '_' {
			return wrong("", "a host cannot hold %q", c)
		}
	}
	return nil
}
