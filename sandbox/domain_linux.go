package sandbox

import (
	"fmt"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"stockade/sandbox/forecast"
)

// useRights is the Landlock right of each [forecast.Use], in their order. Devices have one for each of
// their two kinds, and a plan never grants one without the other.
var useRights = [...]rights{
	ll.AccessFSReadFile, ll.AccessFSReadDir, ll.AccessFSWriteFile, ll.AccessFSTruncate, ll.AccessFSExecute,
	ll.AccessFSMakeReg, ll.AccessFSMakeDir, ll.AccessFSMakeSym, ll.AccessFSMakeFifo, ll.AccessFSMakeSock, ll.AccessFSMakeChar,
	ll.AccessFSRemoveFile, ll.AccessFSRemoveDir, ll.AccessFSRefer,
}

// useOf returns the uses that rights allow.
func useOf(r rights) (u forecast.Use) {
	for i, right := range useRights {
		if r&right != 0 {
			u |= 1 << i
		}
	}
	return u
}

// Domain returns the foresight of a jail whose grants are open, private folders among them.
func (o *Opened) Domain() (*forecast.Domain, error) {
	abi, err := LandlockABI()
	if err != nil {
		return nil, err
	}
	h := handled(o.Plan.Network, abi)
	var rules []forecast.Rule
	for i := range o.Grants {
		g := &o.Grants[i]
		if g.State != Granted {
			continue
		}
		r := forecast.Rule{Grants: useOf(g.Access.rights().on(g.Kind) & h.files)}
		if g.Kind == KindFolder {
			r.Kind = forecast.OnFolder
		}
		if r.Object, err = forecast.Identify(g.fd); err == nil {
			r.Path, err = targetOf(g.fd)
		}
		if err != nil {
			return nil, fmt.Errorf("looking at the grant of %q: %w", g.Path, err)
		}
		rules = append(rules, r)
	}
	return forecast.New(useOf(h.files), rules), nil
}
