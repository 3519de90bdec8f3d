package packages

import (
	"net/url"
	"strings"
)

// InstallError is an install that did not come about: one plain line and one hint. Neither
// holds a credential.
type InstallError struct {
	Problem string // one line
	Cure    string // what to do about it
}

func (e *InstallError) Error() string { return e.Problem }

// Hint returns what a person can do about it.
func (e *InstallError) Hint() string { return e.Cure }

// withoutPassword takes the user and password, and a query that may hold a token, out of a
// URL. Other text comes back as it is, and a URL that cannot be read not at all.
func withoutPassword(address string) string {
	if !strings.Contains(address, "://") {
		return address
	}
	u, err := url.Parse(address)
	if err != nil {
		return "(a URL that cannot be read)"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}
