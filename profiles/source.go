package profiles

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
)

// Source is one file that a profile's words came from.
type Source struct {
	File   string            // as shown to the person
	Real   string            // where it lies: the kernel's word about the opened file
	SHA256 [sha256.Size]byte // of the bytes that were parsed
}

// Subject is what a person allows or denies: a profile of a repository with all that it is
// made of.
type Subject struct {
	File    string // the profile's own file, as shown
	Real    string // where it lies
	Sources []Source
}

// Subject returns what a complete profile is made of: the files that it extends, itself, and
// the others that it reads (see [Wanted].SyscallFile). False for profiles without a file.
func (p *Profile) Subject(others ...Source) (Subject, bool) {
	if len(p.Sources) == 0 {
		return Subject{}, false
	}
	// What a profile extends is merged before itself.
	own := &p.Sources[len(p.Sources)-1]
	return Subject{File: own.File, Real: own.Real, Sources: appended(p.Sources, others)}, true
}

// Digest tells contents apart: it changes with any byte of any file, with a file more or
// less, with their order and with their places. 64 hexadecimal digits.
func (s *Subject) Digest() string {
	h := sha256.New()
	for i := range s.Sources {
		// Quoted, so that no name can be mistaken for two.
		fmt.Fprintf(h, "%q %x\n", s.Sources[i].Real, s.Sources[i].SHA256) // a hash takes all writes
	}
	return hex.EncodeToString(h.Sum(nil))
}

// repository is the folder that the subject came with. Nothing in it is the person's word.
func (s *Subject) repository() string {
	if top, found := repositoryOf(s.Real); found {
		return top
	}
	return filepath.Dir(s.Real)
}
