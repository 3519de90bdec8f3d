package profiles

import (
	"fmt"
	"strings"
)

// Mentions is what a server's own files name: its documentation and its code. They say what
// the server may need, and that is for a person to decide: whoever wrote the files wrote
// these too.
type Mentions struct {
	Secrets   []Mention // variables whose names say that they hold a secret
	Variables []Mention // other variables
	Hosts     []Mention // "api.example.com:443"
	// Cut says that there were more files than were read.
	Cut bool
}

// Mention is one name, and where it stands.
type Mention struct {
	Name string
	From string // "README.md:12"; "" when it is not known
}

const (
	// maxProposed bounds how many names of one kind are written down.
	maxProposed = 60
	// maxMention bounds a name and a place, in bytes: a line has to be readable.
	maxMention = 200
)

func proposeNetwork(b *strings.Builder, m *Mentions) {
	b.WriteString("network:\n  egress: none                  # or a list of hosts, such as [\"api.example.com:443\"]; public; all\n")
	hosts := usable(m.Hosts, checkEgress, nil)
	if len(hosts) > 0 {
		b.WriteString("  # The server's own files name these hosts. To let it reach some of them, put the list in\n  # the place of the line above.\n  # egress:\n")
		proposeList(b, hosts)
	}
	b.WriteString(`  # listen: [8080]              # TCP ports that it may bind
  # unix: ["${runtime}/app.sock"]  # Unix sockets that it may connect to

`)
}

func proposeEnvironment(b *strings.Builder, m *Mentions) {
	b.WriteString("environment:\n")
	secrets := usable(m.Secrets, checkSecret, nil)
	plain := usable(m.Variables, checkPass, secrets)
	if len(secrets)+len(plain) > 0 {
		b.WriteString("  # The variables below stand in the server's own files. Keep those that you set, and take\n  # away the sign of comment.\n")
	}
	if len(plain) > 0 {
		b.WriteString("  # pass:                       # variables of the host, by name\n")
		proposeList(b, plain)
	} else {
		b.WriteString("  # pass: [TZ, \"LC_*\"]          # variables of the host, by name\n")
	}
	b.WriteString("  # set: {NAME: value}          # variables with values of your own\n")
	if len(secrets) > 0 {
		b.WriteString("  # secrets:                    # variables that it needs and nobody may see; {name: X, optional: true} may be unset\n")
		proposeList(b, secrets)
	} else {
		b.WriteString("  # secrets: [API_TOKEN]        # variables that it needs and nobody may see\n")
	}
	if m.Cut {
		b.WriteString("  # The server has more files than were read for this.\n")
	}
}

// usable are the mentions that the profile's own rules take, each name once and none that
// another list has.
func usable(list []Mention, check func(string) (string, *problem), other []Mention) []Mention {
	seen := make(map[string]bool, len(list)+len(other))
	for _, m := range other {
		seen[m.Name] = true
	}
	var out []Mention
	for _, m := range list {
		if seen[m.Name] || len(m.Name) > maxMention || !plainName(m.Name) {
			continue
		}
		if _, bad := check(m.Name); bad != nil {
			continue
		}
		seen[m.Name] = true
		out = append(out, m)
	}
	return out
}

// proposeList writes names as the lines of a list, all of them comments.
func proposeList(b *strings.Builder, list []Mention) {
	for i, m := range list {
		if i == maxProposed {
			fmt.Fprintf(b, "  # And %d more.\n", len(list)-i)
			return
		}
		line := "  #   - " + quoteText(m.Name)
		if len(m.From) <= maxMention && plainName(m.From) {
			line = fmt.Sprintf("%-31s # %s", line, m.From)
		}
		b.WriteString(line + "\n")
	}
}
