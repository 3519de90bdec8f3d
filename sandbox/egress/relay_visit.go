package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"
)

// visit is one relayed connection.
type visit struct {
	relay  *Relay
	client *net.TCPConn
	dst    netip.AddrPort // where the client wanted to connect
	who    Client
	read   []byte // what the client sent and nobody has dealt with
	buffer []byte // that read is a part of
	begun  bool   // the client has sent its first byte
}

// serve does what the client's first bytes ask for. The caller resets what is still open.
func (v *visit) serve() {
	for {
		switch sniff(v.read) {
		case untold:
			if v.more() != nil {
				return
			}
		case speaksTLS:
			v.serveTLS()
			return
		case speaksHTTP1:
			v.serveHTTP1()
			return
		case speaksHTTP2:
			v.serveHTTP2()
			return
		case unknown:
			v.report(refuse("what the client sends is neither TLS nor HTTP, so it names no server"))
			return
		}
	}
}

// more reads on. The time for a hello begins with the connection's first byte.
func (v *visit) more() error {
	if len(v.read) == 0 {
		v.read = v.buffer[:0]
	}
	if len(v.read) == cap(v.read) {
		v.buffer = make([]byte, max(4<<10, 2*len(v.read)))
		v.read = v.buffer[:copy(v.buffer, v.read)]
	}
	n, err := v.client.Read(v.read[len(v.read):cap(v.read)])
	if n > 0 && !v.begun {
		v.begun = true
		if err := v.client.SetReadDeadline(time.Now().Add(helloWait)); err != nil {
			return err
		}
	}
	v.read = v.read[:len(v.read)+n]
	if n > 0 {
		return nil
	}
	return err
}

// report tells of a refusal.
func (v *visit) report(why *refusal) {
	denial := Denial{
		Time: time.Now(), PID: v.who.PID, Program: v.who.Program,
		Call: "relay", Asked: "tcp " + v.dst.String(), Rule: why.rule, Hint: why.hint,
	}
	if why.name != "" {
		denial.Asked = "server name " + why.name + " on " + v.dst.String()
	}
	if denial.Hint == "" && why.name == "" {
		denial.Hint = `add "` + v.dst.String() + `" to network.egress, or set "names: pinned", to connect without a server name`
	}
	v.relay.deny(denial)
}

// errUnreachable is for servers that are allowed and do not answer.
var errUnreachable = errors.New("connecting to the server: no address of it answers")

// connect judges a name and connects to its server. Errors are a refusal, or what a client
// without a relay would have met while connecting.
func (v *visit) connect(name string) (*net.TCPConn, error) {
	addrs, err := v.judge(name)
	if err != nil {
		return nil, err
	}
	upstream, err := dial(v.relay.ctx, addrs, v.dst.Port(), func(to netip.AddrPort) error {
		if d := v.relay.decider.Upstream(name, to); d.Verdict != Direct {
			return &refusal{name: name, rule: d.Rule, hint: d.Hint}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !v.relay.track(upstream) {
		return nil, net.ErrClosed
	}
	return upstream, nil
}

// judge returns the addresses that the name may be reached at.
func (v *visit) judge(name string) ([]netip.Addr, error) {
	for range 2 {
		decision, addrs := v.relay.decider.Server(name, v.dst)
		switch {
		case decision.Verdict != Direct && decision.Verdict != Relayed:
			return nil, &refusal{name: name, rule: decision.Rule, hint: decision.Hint}
		case len(addrs) > 0:
			return addrs, nil
		}
		// The client has the address from elsewhere: a name of its own, or its own cache.
		ctx, cancel := context.WithTimeout(v.relay.ctx, totalWait)
		_, err := v.relay.stub.Resolve(ctx, name)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return nil, errUnreachable
}

// end reports an error of connecting or reading when it is a refusal. Other errors are told
// to the client by the reset.
func (v *visit) end(err error) {
	if why := (*refusal)(nil); errors.As(err, &why) {
		v.report(why)
	}
}
