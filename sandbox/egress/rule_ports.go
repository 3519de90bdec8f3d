package egress

import (
	"net/netip"
	"strconv"
	"strings"
)

// parsePorts reads "443" or "8000-8100". The target is for what may have been meant.
func parsePorts(text, target string) (Ports, *fault) {
	firstText, lastText, isRange := strings.Cut(text, "-")
	if !isRange {
		lastText = firstText
	}
	first, wrong := parsePort(firstText)
	if wrong == nil {
		var last uint16
		last, wrong = parsePort(lastText)
		if wrong == nil && last < first {
			wrong = &fault{problem: "has a port range that ends before it begins", meant: lastText + "-" + firstText}
		}
		if wrong == nil {
			return Ports{first, last}, nil
		}
	}
	switch {
	case isRange && firstText == "0":
		wrong.meant = target + ":1-" + lastText
	case isRange && wrong.meant != lastText+"-"+firstText:
		wrong.meant = "" // what one end should be says nothing about the other
	case wrong.meant != "":
		wrong.meant = target + ":" + wrong.meant
	}
	return Ports{}, wrong
}

// parsePort reads a number from 1 to 65535 in its only spelling.
func parsePort(text string) (uint16, *fault) {
	switch {
	case text == "":
		return 0, &fault{problem: "lacks a port", meant: defaultPort}
	case text == "*":
		return 0, &fault{problem: "has a port that is no number", meant: "1-65535"}
	case strings.Trim(text, "0123456789") != "":
		return 0, &fault{problem: "has a port that is no number", meant: servicePort(text)}
	case strings.Trim(text, "0") == "":
		return 0, &fault{problem: "has port 0, which is none"}
	case text[0] == '0':
		return 0, &fault{problem: "has a port with a leading zero", meant: strings.TrimLeft(text, "0")}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return 0, &fault{problem: "has a port above 65535"}
	}
	return uint16(port), nil
}

// fromURL is the rule that a URL may stand for; "" when its port is not known.
func fromURL(scheme, rest string) string {
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	bare := strings.TrimSuffix(rest, ":")
	hasPort := strings.LastIndexByte(bare, ':') > strings.LastIndexByte(bare, ']')
	if hasPort {
		return bare
	}
	port := servicePort(strings.ToLower(scheme))
	if port == "" {
		return ""
	}
	return bare + ":" + port
}

// servicePort is the port of a service's name or of a URL's scheme; "" for one that is not known.
func servicePort(name string) string {
	switch name {
	case "https", "wss":
		return "443"
	case "http", "ws":
		return "80"
	case "ssh", "sftp":
		return "22"
	case "smtp":
		return "25"
	case "imaps":
		return "993"
	case "ldap":
		return "389"
	case "ldaps":
		return "636"
	case "postgres", "postgresql":
		return "5432"
	case "mysql", "mariadb":
		return "3306"
	case "redis", "rediss":
		return "6379"
	case "mongodb":
		return "27017"
	case "amqp":
		return "5672"
	case "amqps":
		return "5671"
	case "git":
		return "9418"
	}
	return ""
}

// oddAddress reads an IPv4 address as inet_aton(3) does: one to four numbers, decimal, octal
// or hexadecimal, the last of which fills the rest. It is for telling what was written,
// never for deciding: what it reads is refused.
func oddAddress(text string) (netip.Addr, bool) {
	parts := strings.Split(strings.TrimSuffix(text, "."), ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		if part == "" || strings.Trim(strings.ToLower(part), "0123456789abcdefx") != "" {
			return netip.Addr{}, false
		}
		number, err := strconv.ParseUint(part, 0, 32)
		if err != nil {
			return netip.Addr{}, false
		}
		width := 8
		if i == len(parts)-1 {
			width = 8 * (5 - len(parts))
		}
		if number >= 1<<width {
			return netip.Addr{}, false
		}
		value = value<<width | number
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
