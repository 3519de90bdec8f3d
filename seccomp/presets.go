package seccomp

import "runtime"

//go:generate go test -run ^TestPresets$ -update .

// Program returns the policy's filter for the running machine, ready for [Install].
//
// The policies that profiles without a syscalls section compile to are embedded; all others
// are built, which takes a few milliseconds.
func (p Policy) Program() (Program, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	if code := p.preset(); code != "" {
		return parseProgram(code)
	}
	filter, err := p.Filter()
	if err != nil {
		return nil, err
	}
	return Build(filter, runtime.GOARCH)
}

// network is what a policy says about sockets, as far as presets exist for it.
type network uint8

const (
	networkNone     network = iota // no sockets
	networkServer                  // TCP sockets that listen and never connect
	networkClient                  // TCP and UDP, never listening
	networkInternet                // both
	networkSupervisedUnix
	networkSupervisedServer // Unix, and TCP sockets that listen
	networkSupervisedInternet
	networkOther // no preset
)

func (p Policy) network() network {
	if p.Supervision != Unsupervised {
		return p.supervisedNetwork()
	}
	switch {
	case p.Sockets == NoSockets && p.Listening == ListenRefused:
		return networkNone
	case p.Sockets == ListenSockets && p.Listening == ListenAllowed:
		return networkServer
	case p.Sockets == InternetSockets && p.Listening == ListenRefused:
		return networkClient
	case p.Sockets == InternetSockets && p.Listening == ListenAllowed:
		return networkInternet
	default:
		return networkOther
	}
}

func (p Policy) supervisedNetwork() network {
	switch {
	case p.Supervision == SupervisedInternet:
		return networkSupervisedInternet
	case p.Sockets == ListenSockets:
		return networkSupervisedServer
	default:
		return networkSupervisedUnix
	}
}

// preset returns the embedded instructions of a valid policy; "" when there are none.
func (p Policy) preset() string {
	n := p.network()
	if n == networkOther || p.Observation != Unobserved || p.Base != nil || len(p.Allow) > 0 || len(p.Deny) > 0 {
		return ""
	}
	return embedded(n, p.Metadata, p.Truncation)
}
