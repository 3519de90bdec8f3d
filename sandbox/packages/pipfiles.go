package packages

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Prepare writes the install's own pip.conf into the stage's home, and a .netrc with the
// entries for the hosts of the index alone. With install scripts both are without any
// credential: whatever lies in the stage, a script can read.
func (c PipConfig) Prepare(r Request, s Stage) error {
	var conf strings.Builder
	conf.WriteString("[global]\n")
	for _, key := range pipKept {
		values := c.values[key]
		if len(r.Scripts) > 0 {
			if key == "client-cert" {
				continue
			}
			values = slices.Clone(values)
			for i, value := range values {
				values[i] = withoutUser(value)
			}
		}
		if len(values) > 0 {
			conf.WriteString(key + " = " + strings.Join(values, "\n    ") + "\n")
		}
	}
	if err := writeNew(filepath.Join(s.Home, pipConf), conf.String()); err != nil {
		return fmt.Errorf("writing the install's pip configuration: %w", err)
	}
	return writeNetrc(c.netrc, r, s)
}

// writeNetrc writes the entries, or none with install scripts, into the stage's .netrc. The
// file is there in each case, and the steps name it, so that no other is looked for.
func writeNetrc(entries []netrcEntry, r Request, s Stage) error {
	var netrc strings.Builder
	for _, e := range entries {
		if len(r.Scripts) == 0 {
			fmt.Fprintf(&netrc, "machine %s login %s password %s\n", quoteNetrc(e.host), quoteNetrc(e.login), quoteNetrc(e.password))
		}
	}
	if err := writeNew(filepath.Join(s.Home, ".netrc"), netrc.String()); err != nil {
		return fmt.Errorf("writing the install's .netrc: %w", err)
	}
	return nil
}

// writeNew writes a file that only its owner reads and that is not there yet.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closing := f.Close(); err == nil {
		err = closing
	}
	return err
}

// withoutUser takes user and password out of a URL and leaves the rest as it is.
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// netrcEntry is a login of a .netrc file.
type netrcEntry struct{ host, login, password string }

// netrcFor reads the person's .netrc and keeps the entries of some hosts. The file holds
// passwords for other hosts too, and those are nobody's business during an install.
func netrcFor(p Person, hosts map[string]bool) ([]netrcEntry, error) {
	path, _ := p.lookup("NETRC")
	if path == "" {
		path = filepath.Join(p.Home, ".netrc")
	}
	text, err := os.ReadFile(path)
	if isAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading .netrc: %w", err)
	}
	var kept []netrcEntry
	for _, e := range parseNetrc(string(text)) {
		if hosts[strings.ToLower(e.host)] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

// parseNetrc reads the entries that name a machine; "default" and macros are left out.
func parseNetrc(text string) []netrcEntry {
	var all []netrcEntry
	words := netrcWords(text)
	named := false
	next := func(i int) string {
		if i+1 < len(words) {
			return words[i+1]
		}
		return ""
	}
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "machine":
			all, named = append(all, netrcEntry{host: next(i)}), true
			i++
		case "default", "macdef":
			named = false
		case "login", "user":
			if named {
				all[len(all)-1].login = next(i)
			}
			i++
		case "password":
			if named {
				all[len(all)-1].password = next(i)
			}
			i++
		case "account":
			i++
		}
	}
	return all
}

// netrcWords splits a .netrc file: words at white space, in double quotes with backslashes,
// comments from a "#" at a word's beginning that no password can be taken for.
func netrcWords(text string) []string {
	var words []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "#") {
			continue
		}
		for line != "" {
			var b strings.Builder
			i, quoted := 0, line[0] == '"'
			if quoted {
				i = 1
			}
			for ; i < len(line); i++ {
				c := line[i]
				if c == '\\' && i+1 < len(line) {
					i++
					b.WriteByte(line[i])
					continue
				}
				if quoted && c == '"' {
					i++
					break
				}
				if !quoted && (c == ' ' || c == '\t') {
					break
				}
				b.WriteByte(c)
			}
			words = append(words, b.String())
			line = strings.TrimLeft(line[i:], " \t")
		}
	}
	return words
}

func quoteNetrc(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
