package egress

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

// Lengths of RFC 1035, section 2.3.4, in the text form without a trailing dot.
const (
	maxName  = 253
	maxLabel = 63
)

// CanonicalName brings a host name from the wire (a query, a server name, a Host header
// without its port) to the form that rules hold: lower case, no trailing dot. A name
// that is not ASCII, or is no host name, is an error: on the wire, names are in their
// ASCII form, and what a peer makes of other bytes cannot be known.
func CanonicalName(name string) (string, error) {
	canonical, problem := canonicalName(name)
	if problem != "" {
		return "", &NameError{Name: name, Problem: problem}
	}
	return canonical, nil
}

// NameError is text that is no host name.
type NameError struct {
	Name    string // may be anything: quote it
	Problem string // what is wrong, to follow the name
}

// Error returns the quoted name and what is wrong with it.
func (e *NameError) Error() string { return quoted(e.Name) + " " + e.Problem }

// quoted returns text for a message: printable, in quotes, and not long.
func quoted(text string) string {
	const most = 120
	if len(text) > most {
		cut := most
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		return strconv.QuoteToASCII(text[:cut]) + "…"
	}
	return strconv.QuoteToASCII(text)
}

// canonicalName is CanonicalName with the bare problem, "" for none.
func canonicalName(name string) (canonical, problem string) {
	name = strings.TrimSuffix(name, ".")
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return "", "is not ASCII"
		}
	}
	name = strings.ToLower(name)
	if problem := hostNameProblem(name); problem != "" {
		return "", problem
	}
	if endsInNumber(name) {
		return "", "is read as an address, not as a name"
	}
	return name, ""
}

// writtenName brings a name that a person wrote to the form that rules hold: other
// alphabets become their ASCII form (IDNA 2008 with the mapping of UTS 46). The form may
// still be one that resolvers read as an address.
func writtenName(name string) (canonical, problem string) {
	name = strings.TrimSuffix(name, ".")
	ascii := !strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf })
	if ascii {
		name = strings.ToLower(name)
	} else {
		mapped, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return "", "has no ASCII form (IDNA)"
		}
		name = strings.TrimSuffix(mapped, ".")
	}
	if problem := hostNameProblem(name); problem != "" {
		return "", problem
	}
	for label := range strings.SplitSeq(name, ".") {
		// Only these labels: the profile refuses hyphens in the third and fourth place, and
		// underscores, both of which ordinary hosts have.
		if strings.HasPrefix(label, "xn--") {
			if back, err := idna.Lookup.ToASCII(label); err != nil || back != label {
				return "", "has the label " + quoted(label) + ", which stands for no text (IDNA)"
			}
		}
	}
	return name, ""
}

// hostNameProblem says why lower-case text is no host name: letters, digits, hyphens within,
// and underscores, which RFC 952 leaves out and container and bucket names have.
func hostNameProblem(name string) string {
	if name == "" {
		return "is no name"
	}
	if len(name) > maxName {
		return "has " + strconv.Itoa(len(name)) + " characters, a name has at most " + strconv.Itoa(maxName)
	}
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case label == "":
			return "has an empty label: two dots, or one at an end"
		case len(label) > maxLabel:
			return "has a label of " + strconv.Itoa(len(label)) + " characters, a label has at most " + strconv.Itoa(maxLabel)
		case label[0] == '-' || label[len(label)-1] == '-':
			return "has the label " + quoted(label) + ", which begins or ends with a hyphen"
		}
		for _, r := range label {
			if !isHostRune(r) {
				return "holds " + strconv.QuoteRuneToASCII(r) + ", which no host name has"
			}
		}
	}
	return ""
}

func isHostRune(r rune) bool {
	return 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '-' || r == '_'
}

// endsInNumber tells whether resolvers and URL parsers may read the name as an IPv4 address:
// the last label is decimal, octal or hexadecimal (the test of the URL standard). Names in
// the DNS do not end so.
func endsInNumber(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, is := strings.CutPrefix(last, "0x"); is {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(last, "0123456789") == ""
}

// isMetadataName tells whether a name in canonical form is that of a cloud's metadata
// service, which hands out the machine's credentials. Their addresses are in the table of
// special addresses; the names are refused too, since a resolver inside a cloud may answer
// with another one. Vendors document the most of them; the rest are on lists of such names.
func isMetadataName(name string) bool {
	switch name {
	case "metadata", "metadata.google.internal", "metadata.goog", // Google Cloud
		"instance-data", "instance-data.ec2.internal", // Amazon
		"metadata.azure.internal",    // Azure
		"metadata.tencentyun.com",    // Tencent Cloud
		"metadata.oraclecloud.com",   // Oracle Cloud
		"api.metadata.cloud.ibm.com": // IBM Cloud
		return true
	}
	return false
}

// localName tells whether a name in canonical form is this machine (RFC 6761, section 6.3).
func localName(name string) bool {
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}
