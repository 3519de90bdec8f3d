package sandbox

// #include "steps.h"
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"

	"stockade/seccomp"
)

// prepared is the part of Enter that Go does: everything is made, opened and looked up, and
// the steps that confine a process are written down. Nothing confines yet.
type prepared struct {
	steps
	report   Report
	ruleset  int // descriptor; -1 when closed
	group    int // cgroup.procs of the jail's control group; -1 for none
	installs int // index of the step that installs the filter
	terminal LayerReport
}

func (p *prepared) close() {
	p.release()
	for _, fd := range [...]*int{&p.ruleset, &p.group} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// session says how the jail leaves the controlling terminal.
type session uint8

const (
	// sameProcess: this process has left it already ([leaveTerminal]).
	sameProcess session = iota
	// newSession: a child begins its life in this process's group, so setsid(2) works.
	newSession
)

// prepare does the first steps of the order that [Enter] documents, and writes down the
// others.
func (o *Opened) prepare(who session, listener seccomp.Listener) (*prepared, error) {
	p := &prepared{ruleset: -1, group: -1}
	if err := o.prepareInto(p, who, listener); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (o *Opened) prepareInto(p *prepared, who session, listener seccomp.Listener) error {
	abi, err := LandlockABI()
	if err != nil {
		return err
	}
	landlock, err := supportOf(o.Plan, abi)
	if err != nil {
		return err
	}
	program, err := o.Plan.Filter.Program()
	if err != nil {
		return fmt.Errorf("making the system call filter: %w", err)
	}
	if err := o.makeFolders(); err != nil {
		return err
	}
	removeStale(o.Plan.Runs, filepath.Base(o.Plan.Tmp.Path))
	p.report.enforced(LayerEnvironment, fmt.Sprintf("%d variables, built from nothing", len(o.Plan.Env)))
	if err := p.leave(who); err != nil {
		return err
	}
	if err := checkStdio(); err != nil {
		return err
	}
	if err := p.joinGroup(o.Plan.Limits); err != nil {
		return err
	}
	if err := p.limit(o.Plan.Limits); err != nil {
		return err
	}
	p.report.enforced(LayerLimits, "core dumps off, umask 077")
	p.report.Layers = append(p.report.Layers, p.terminal)
	if err := closeInherited(); err != nil {
		return err
	}
	p.report.enforced(LayerDescriptors, "0 to 2 only")

	// The ruleset is made while the grants' descriptors can still be used and before
	// privileges go; making it restricts nothing.
	if p.ruleset, err = ruleset(o, abi); err != nil {
		return err
	}
	outside, err := canary(o)
	if err != nil {
		return err
	}
	return p.confine(o, landlock, program, listener, outside)
}

// confine writes down what cannot be taken back, in its order, and the reading back.
func (p *prepared) confine(o *Opened, landlock []LayerReport, program seccomp.Program, listener seccomp.Listener, outside string) error {
	state, last, err := bounding()
	if err != nil {
		return err
	}
	p.drop(state, last)
	detail := "all sets empty"
	if state == boundingKept {
		detail = "all sets empty but the bounding one, which no_new_privs keeps out of reach"
	}
	p.report.enforced(LayerCapabilities, detail)
	p.report.enforced(LayerNoNewPrivs, "")
	p.do("restricting by Landlock", unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(p.ruleset), 0).refused = restrictError //nolint:gosec // a descriptor
	p.report.Layers = append(p.report.Layers, landlock...)
	p.installs = len(p.list)
	p.filter(program, listener)
	p.report.enforced(LayerSeccomp, "")

	p.seeDropped(state, last)
	p.seeFilter(o.Plan.Filter)
	if err := p.seeLimits(o.Plan.Limits); err != nil {
		return err
	}
	return p.seeLandlock(outside)
}

// leave takes the controlling terminal away.
func (p *prepared) leave(who session) error {
	if who == sameProcess {
		var err error
		p.terminal, err = leaveTerminal()
		return err
	}
	p.add(step{doing: "starting a session"}, unix.SYS_SETSID, nil).call.outcome = C.NOT_NEGATIVE
	p.terminal = LayerReport{LayerTerminal, Enforced, "left by a new session"}
	var st unix.Stat_t
	switch err := unix.Stat("/dev/tty", &st); {
	case errors.Is(err, unix.ENOENT):
		return nil // no name that could be opened
	case err != nil:
		return fmt.Errorf("looking for a controlling terminal: %w", err)
	}
	path, err := unix.BytePtrFromString("/dev/tty")
	if err != nil {
		return err
	}
	// ENXIO: there is no controlling terminal (tty(4)).
	p.see(LayerTerminal, "no controlling terminal", refusal(unix.ENXIO),
		unix.SYS_OPENAT, atWorkingFolder, at(&p.steps, path), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	return nil
}

// joinGroup makes the control group, with its limits, and writes down the move into it.
func (p *prepared) joinGroup(l Limits) error {
	group, err := newCgroup(l)
	if err != nil || group == "" {
		return err
	}
	p.report.enforced(LayerCgroup, group)
	if p.group, err = unix.Open(filepath.Join(group, "cgroup.procs"), unix.O_WRONLY|unix.O_CLOEXEC, 0); err != nil {
		return fmt.Errorf("opening the control group %q: %w", group, err)
	}
	self := []byte("0") // the writer
	one := p.add(step{doing: "moving into the control group"}, unix.SYS_WRITE,
		[]uintptr{uintptr(p.group), at(&p.steps, &self[0]), 1}) //nolint:gosec // a descriptor
	one.call.want = 1
	return nil
}

// restrictError explains why landlock_restrict_self(2) failed.
func restrictError(errno unix.Errno) error {
	if errors.Is(errno, unix.E2BIG) {
		return fmt.Errorf("restricting by Landlock: 16 rulesets are stacked already: %w", errno)
	}
	return fmt.Errorf("restricting by Landlock: %w", errno)
}
