package program

import (
	"bytes"
	"strings"
)

// openssl adds the configuration of OpenSSL, which carries the machine's policy for TLS.
//
// Node reads it at once, and a file that is there but refused ends the process, while an
// absent one does not (node 20); other programs go on without the policy. Where it lies is
// fixed when OpenSSL is built: /etc/ssl for node's own builds, other places for
// distributions', and below a prefix such as conda's.
func (s *search) openssl(prefix string) {
	configurations := [...]string{
		"/etc/ssl/openssl.cnf",
		"/usr/lib/ssl/openssl.cnf",
		"/etc/pki/tls/openssl.cnf",
		"/usr/local/ssl/openssl.cnf",
		prefix + "/ssl/openssl.cnf",
		prefix + "/etc/ssl/openssl.cnf",
		s.facts.Env["OPENSSL_CONF"],
	}
	for _, path := range configurations {
		s.opensslConfiguration(path, 0)
	}
}

// opensslConfiguration adds a configuration file and what it includes: a refused include
// is as fatal as the file itself.
func (s *search) opensslConfiguration(path string, depth int) {
	if path == "" || depth > 3 {
		return
	}
	path = s.absolute(path)
	found, err := s.real(path)
	if err != nil {
		return
	}
	if _, known := s.read[found.path]; known {
		return
	}
	if found.folder() {
		// An include may name a folder; OpenSSL takes its files ending in .cnf and .conf.
		if depth > 0 && !s.tooBroad(found.path) {
			s.needFolder(found.path, "OpenSSL configuration", tolerable)
		}
		return
	}
	if !found.regular() {
		return
	}
	s.need(Need{Path: found.path, Why: "OpenSSL configuration", Optional: true})
	text, err := s.tree.read(found.path, 1<<20)
	if err != nil {
		return
	}
	for at := 0; ; {
		i := bytes.Index(text[at:], []byte(".include"))
		if i < 0 {
			return
		}
		start := at + i
		at = start + len(".include")
		line := text[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end]
		}
		if begun := bytes.LastIndexByte(text[:start], '\n') + 1; len(bytes.TrimSpace(text[begun:start])) > 0 {
			continue // in a comment, or the tail of a value
		}
		included := string(bytes.Trim(line, " \t\r=\"'"))
		if strings.HasPrefix(included, "/") {
			s.opensslConfiguration(included, depth+1)
		}
	}
}
