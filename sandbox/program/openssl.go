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
	system := [...]string{
		"/etc/ssl/openssl.cnf",
		"/usr/lib/ssl/openssl.cnf",
		"/etc/pki/tls/openssl.cnf",
		"/usr/local/ssl/openssl.cnf",
	}
	for _, path := range system {
		s.opensslConfiguration(path, "/", 0)
	}
	s.opensslConfiguration(prefix+"/ssl/openssl.cnf", prefix, 0)
	s.opensslConfiguration(prefix+"/etc/ssl/openssl.cnf", prefix, 0)
	if path := s.facts.Env["OPENSSL_CONF"]; path != "" {
		// The host names the file, and the file its neighbours.
		if found, err := s.real(s.absolute(path)); err == nil {
			s.opensslConfiguration(found.path, parentOf(found.path), 0)
		}
	}
}

// opensslConfiguration adds a configuration file and what it includes: a refused include
// is as fatal as the file itself. A library that a server brought along has a prefix of
// the server's, so files outside of the tree are not added.
func (s *search) opensslConfiguration(path, tree string, depth int) {
	if depth > 3 {
		return
	}
	found, err := s.real(path)
	if err != nil || s.allowed(found.path) {
		return
	}
	if !inside(found.path, tree) {
		s.note("the OpenSSL configuration of %q leads to %q, which lies outside of it and is not readable; %s", tree, found.path, readHint(found.path))
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
			s.opensslConfiguration(included, tree, depth+1)
		}
	}
}
