package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"stockade/sandbox"
	"stockade/sandbox/egress"
	"stockade/sandbox/guard"
	"stockade/sandbox/supervise"
)

// supervision is what stays in this process while a server runs.
type supervision struct {
	life   *supervise.Life
	config supervise.Config
	rules  *egress.Policy // nil: no network to open
	// answers says that calls of the server wait for this process.
	answers bool
	relay   *guard.Relay // nil: host and server speak to each other
}

// hearing is who is told of refusals.
type hearing struct {
	deny func(egress.Denial)
	// refused and unseen are told of what the kernel refuses; nil for a plan without
	// observation.
	refused func(supervise.Refusal)
	unseen  func()
	// patience is that of [supervise.Life].
	patience time.Duration
	// note is told what the guard withheld.
	note func(string)
}

// superviseServer starts the server as a child and stays until it has ended. The resolver
// and the relay are made while the server starts: its first call that needs a decision waits
// in the kernel until all is there, and nothing else does.
func superviseServer(opened *sandbox.Opened, by hearing, std stdio) error {
	// The server ends with the thread that makes it.
	runtime.LockOSThread()
	s, err := newSupervision(opened, by)
	if err != nil {
		return err
	}
	if err := s.wire(opened.Plan.Guard, by.note); err != nil {
		return err
	}
	var parent sandbox.Parent
	if s.answers {
		parent.Reach = supervise.Reach
	}
	if s.config.Observation != nil {
		parent.Answer = s.config.Observation.Answer
	}
	started, err := sandbox.Start(opened, parent)
	if err != nil {
		return err
	}
	std.sayDegraded(started.Report)
	s.config.Listener, s.config.PID = started.Listener, started.PID
	broken, served := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(served)
		if err := s.serve(opened); err != nil {
			// Without its supervisor the server has no network. It ends, rather than hang.
			broken <- errors.Join(err, unix.Kill(started.PID, unix.SIGKILL))
		}
	}()
	if s.relay != nil {
		s.relay.Start()
	}
	status, err := s.life.Wait(started.PID)
	opened.Discard()
	s.drain()
	if s.config.Observation != nil {
		// Nobody is left who could ask, but the last refusal may still be on its way.
		select {
		case <-served:
		case <-time.After(spoolPatience):
		}
	}
	select {
	case failed := <-broken:
		return errors.Join(fmt.Errorf("supervising the server: %w", failed), err)
	default:
	}
	if err != nil {
		return err
	}
	return ended(status)
}

// serve gives up what a supervisor must not have, opens the network and decides from then
// on. What it holds goes with the process, which ends with the server.
func (s *supervision) serve(opened *sandbox.Opened) error {
	if s.config.Observation != nil {
		var err error
		if s.config.Observation.Domain, err = opened.Domain(); err != nil {
			return err
		}
	}
	if err := supervise.Withdraw(); err != nil {
		return err
	}
	if s.rules != nil {
		if err := s.openNetwork(*s.rules); err != nil {
			return err
		}
	}
	if !s.answers {
		return nil
	}
	return supervise.Serve(s.config)
}

// ended turns a wait status into this process's own.
func ended(status unix.WaitStatus) error {
	code := status.ExitStatus()
	if status.Signaled() {
		code = 128 + int(status.Signal())
	}
	if code == 0 {
		return nil
	}
	return &toldError{code} // whatever there was to say, the server said
}

func newSupervision(opened *sandbox.Opened, by hearing) (*supervision, error) {
	network := &opened.Plan.Network
	s := &supervision{answers: opened.Plan.Mediated() || opened.Plan.Observed(), config: supervise.Config{
		Profile: opened.Plan.Name,
		Listen:  network.Listen,
		Deny:    by.deny,
	}}
	var err error
	if opened.Plan.Observed() {
		s.config.Observation = &supervise.Observation{Tell: by.refused, Unseen: by.unseen}
		if s.config.Observation.Filter, err = opened.Plan.Filter.Unobserved(); err != nil {
			return nil, err
		}
	}
	if network.Egress == sandbox.EgressRules {
		s.rules = &network.Rules
		if err = supervise.ReachRoutes(); err != nil {
			return nil, err // before the server starts, as all that can be known by then
		}
	}
	if s.config.Unix.Sockets, s.config.Unix.Own, err = opened.Sockets(); err != nil {
		return nil, err
	}
	if s.life, err = supervise.Begin(); err != nil {
		return nil, err
	}
	s.life.Patience = by.patience
	return s, nil
}

// maxResolverFile bounds /etc/hosts and /etc/resolv.conf, in bytes. Lists of hosts to block
// have some megabytes.
const maxResolverFile = 16 << 20

// openNetwork makes the resolver and the relay.
func (s *supervision) openNetwork(rules egress.Policy) error {
	hosts, err := readSystemFile("/etc/hosts")
	if err != nil {
		return err
	}
	resolv, err := readSystemFile("/etc/resolv.conf")
	if err != nil {
		return err
	}
	c := &s.config
	c.Servers = egress.Servers(resolv)
	known := egress.ParseHosts(hosts)
	c.Egress = egress.NewDecider(rules, known)
	c.Deny = newSpecialNames(rules.Rules, known, c.Deny).report
	if c.Stub, err = egress.NewStub(c.Egress, c.Servers, c.Deny); err != nil {
		return fmt.Errorf("starting the resolver: %w", err)
	}
	c.Stub.SetHosts(known)
	if c.Relay, err = egress.NewRelay(c.Egress, c.Stub, c.Deny); err != nil {
		return fmt.Errorf("starting the relay: %w", err)
	}
	return nil
}

// readSystemFile reads a file that resolvers read; a missing one is empty, as for them.
func readSystemFile(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading %q: %w", path, plainError(err))
	case len(data) > maxResolverFile:
		return nil, fmt.Errorf("reading %q: it has more than %d bytes", path, maxResolverFile)
	}
	return data, nil
}

// origin is what a plan was made from, as far as its refusals speak of it.
type origin struct {
	source string            // the profile, for people
	hide   *strings.Replacer // see [denialLog]
	// patience is that of [supervise.Life].
	patience time.Duration
}

// superviseLogged supervises a server whose refusals are told and logged.
func superviseLogged(opened *sandbox.Opened, m machine, from origin, std stdio) error {
	lines := newSpool(std.err)
	defer lines.close()
	denials := openDenialLog(m.state, opened.Plan.Name, stdio{in: std.in, out: std.out, err: lines})
	defer denials.close()
	if m.policies.auditsDenials() {
		denials.audit = toSystemLog
	}
	denials.hide = from.hide
	by := hearing{
		deny: denials.deny, patience: from.patience,
		note: noteTo(stdio{in: std.in, out: std.out, err: lines}, from.hide),
	}
	if opened.Plan.Observed() {
		advice := advisor{plan: opened.Plan, source: from.source, dir: opened.Plan.Dir}
		by.refused = func(r supervise.Refusal) { denials.observed(advice.entry(r)) }
		by.unseen = denials.overlooked
	}
	return superviseServer(opened, by, std)
}
