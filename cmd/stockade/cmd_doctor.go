package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/supervise"
)

const doctorAbout = `
DESCRIPTION
    Asks the running kernel for each layer of the jail and prints what was found, and what a
    jail lacks without it; and whether a supervisor can do its work here, which rules in
    network.egress and network.unix need. It restricts nothing and needs no profile; what it
    starts is a process of its own that ends at once.

    A layer is "present", "absent" or "unknown". Unknown counts as absent: a server whose
    plan needs the layer does not start.

    With --json:
        {"kernel", "arch", "landlock_abi", "uid", "starts", "jailed",
         "layers": [{"layer", "verdict", "since", "detail", "without"}],
         "supervisor": {"verdict", "since", "detail", "without"}, "open": [...],
         "policy": {"verdict", "file", "limits", "detail"}}
    "starts" tells whether a server with the empty profile starts on this machine: a broken
    policy (/etc/stockade/policy.yaml) stops every start, as a kernel without a layer does. The
    verdict on the policy is "none", "in force" or "broken". "open" lists what no layer covers
    here. "jailed" is "" unless this process is in a jail of its own, in which no other jail
    starts: then it says how that was seen. Ask again outside.

EXIT STATUS
    0    servers start on this machine, with every layer that the empty profile needs (but
         not from inside a jail, which the last line then says)
    1    they do not
    125  stockade could not tell
`

type doctorOptions struct{ json bool }

func newDoctorCommand(c *call) *cli.Command {
	opts := &doctorOptions{}
	return &cli.Command{
		UsageText:   "stockade doctor [--json]",
		Description: doctorAbout,
		Flags:       []cli.Flag{&cli.BoolFlag{Name: "json", Usage: "print JSON", Destination: &opts.json}},
		Action: func(ctx *cli.Context) error {
			if err := c.noServer(ctx); err != nil {
				return err
			}
			if _, err := c.words(ctx, 0, 0); err != nil {
				return err
			}
			return runDoctor(opts, c.stdio)
		},
	}
}

// diagnosis is the answer of doctor; its JSON form is documented in the help.
type diagnosis struct {
	Kernel      string            `json:"kernel"`
	Arch        string            `json:"arch"`
	LandlockABI int               `json:"landlock_abi"`
	UID         int               `json:"uid"`
	Starts      bool              `json:"starts"`
	Jailed      string            `json:"jailed"`
	Layers      []layerVerdict    `json:"layers"`
	Supervisor  supervisorVerdict `json:"supervisor"`
	Open        []string          `json:"open"`
	Policy      policyVerdict     `json:"policy"`
}

// policyVerdict is the machine's policy: "none", "in force", or "broken" with the reason.
type policyVerdict struct {
	Verdict string   `json:"verdict"`
	File    string   `json:"file"`
	Limits  []string `json:"limits"`
	Detail  string   `json:"detail"`
}

// judgePolicy reads the machine's policy as a start does.
func judgePolicy() policyVerdict {
	v := policyVerdict{Verdict: "none", File: systemPolicyFile(), Limits: []string{}}
	p, err := profiles.ReadSystemPolicy(v.File, systemOwner)
	switch {
	case err != nil:
		v.Verdict, v.Detail = "broken", err.Error()
	case p != nil && p.Starts.Value == profiles.AuditSyslog && !systemLogThere():
		v.Verdict, v.Detail = "broken", p.Starts.Where()+" wants each start told to the system's log, and nothing reads /dev/log"
	case p != nil:
		v.Verdict, v.Limits = "in force", viewPolicies([]*profiles.Policy{p})[0].Limits
	}
	return v
}

// supervisorVerdict says whether this machine lets a supervisor do its work.
type supervisorVerdict struct {
	Verdict string `json:"verdict"`
	Since   string `json:"since"`
	Detail  string `json:"detail"`
	Without string `json:"without"`
}

type layerVerdict struct {
	Layer   sandbox.Layer `json:"layer"`
	Verdict string        `json:"verdict"`
	Since   string        `json:"since"`
	Detail  string        `json:"detail"`
	Without string        `json:"without"`
}

func runDoctor(opts *doctorOptions, std stdio) error {
	d, err := diagnose()
	if err != nil {
		return err
	}
	if opts.json {
		err = writeJSON(std.out, d)
	} else {
		err = writeDiagnosis(std.out, d)
	}
	if err != nil {
		return err
	}
	if !d.Starts {
		if d.Policy.Verdict == "broken" {
			return &noError{answer: "servers do not start: the machine's policy is broken", hint: "whoever keeps " + d.Policy.File + " has to mend it"}
		}
		return &noError{answer: "servers do not start on this kernel", hint: `the layers marked "servers do not start" above are missing; a newer kernel has them`}
	}
	return nil
}

func diagnose() (diagnosis, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return diagnosis{}, fmt.Errorf("asking for the kernel's version: %w", err)
	}
	d := diagnosis{
		Kernel: unix.ByteSliceToString(u.Release[:]), Arch: unix.ByteSliceToString(u.Machine[:]),
		UID: os.Getuid(), Starts: true, Open: openAnywhere(),
	}
	// An error here is in the probes below, too, as "unknown".
	d.LandlockABI, _ = sandbox.LandlockABI()
	for _, p := range sandbox.Probe() {
		d.Layers = append(d.Layers, layerVerdict{
			Layer: p.Layer, Verdict: p.Verdict.String(), Since: p.Since, Detail: p.Detail, Without: p.Without,
		})
		if p.Verdict != sandbox.Present && strings.HasPrefix(p.Without, "servers do not start") {
			d.Starts = false
		}
	}
	d.Supervisor = judgeSupervisor(supervise.Probe())
	if d.Policy = judgePolicy(); d.Policy.Verdict == "broken" {
		d.Starts = false
	}
	if jailed, ok := errors.AsType[*sandbox.JailedError](sandbox.ProbeOpen()); ok {
		d.Jailed = jailed.Error()
	}
	return d, nil
}

// judgeSupervisor words the answer of [supervise.Probe].
func judgeSupervisor(err error) supervisorVerdict {
	v := supervisorVerdict{
		Verdict: sandbox.Present.String(), Since: "Linux 5.19", Detail: "decides on connections by host, address and socket file",
		Without: "servers with rules or public in network.egress, or with network.unix, do not start; others are not concerned",
	}
	if err == nil {
		return v
	}
	v.Verdict, v.Detail = sandbox.Unknown.String(), err.Error()
	if lacks, told := errors.AsType[*supervise.ProbeError](err); told {
		v.Verdict = sandbox.Absent.String()
		if lacks.Since != "" {
			v.Since = lacks.Since
		}
	}
	return v
}

// openAnywhere is what no kernel of today closes for an unprivileged launcher, whatever
// the profile says.
func openAnywhere() []string {
	return []string{
		"names, sizes, times and modes of files outside the grants can be asked for (stat, readlink, access): Landlock has no right for them",
		"a program that the server may read can be started through its ELF loader, inside the same jail",
		"processor time is not limited",
	}
}

func writePolicy(w io.Writer, p policyVerdict) {
	switch p.Verdict {
	case "broken":
		fmt.Fprintf(w, "\nPolicy: broken, so nothing starts: %s\n", escape(strings.ReplaceAll(p.Detail, "\n", "; ")))
	case "none":
		fmt.Fprintf(w, "\nPolicy: none (%s)\n", escape(p.File))
	default:
		fmt.Fprintf(w, "\nPolicy: %s\n", escape(p.File))
		for _, l := range p.Limits {
			fmt.Fprintf(w, "  %s\n", escape(l))
		}
	}
}

func writeDiagnosis(w io.Writer, d diagnosis) error {
	rows := [][]string{}
	for _, l := range d.Layers {
		rows = append(rows, []string{string(l.Layer), l.Verdict, l.Since, escape(l.Detail)})
	}
	abi := "no Landlock"
	if d.LandlockABI > 0 {
		abi = fmt.Sprintf("Landlock ABI %d", d.LandlockABI)
	}
	fmt.Fprintf(w, "Linux %s on %s, %s, uid %d\n\n", escape(d.Kernel), escape(d.Arch), abi, d.UID)
	rows = append(rows, []string{"supervisor", d.Supervisor.Verdict, d.Supervisor.Since, escape(d.Supervisor.Detail)})
	if err := table(w, rows); err != nil {
		return err
	}
	missing := false
	for _, l := range d.Layers {
		if l.Verdict == sandbox.Present.String() {
			continue
		}
		if !missing {
			fmt.Fprintf(w, "\nWithout:\n")
			missing = true
		}
		fmt.Fprintf(w, "  %s: %s\n", l.Layer, escape(l.Without))
	}
	if d.Supervisor.Verdict != sandbox.Present.String() {
		if !missing {
			fmt.Fprintf(w, "\nWithout:\n")
		}
		fmt.Fprintf(w, "  supervisor: %s\n", escape(d.Supervisor.Without))
	}
	writePolicy(w, d.Policy)
	fmt.Fprintf(w, "\nOpen on every kernel of today:\n")
	for _, o := range d.Open {
		fmt.Fprintf(w, "  %s\n", o)
	}
	verdict := "Servers start here."
	switch {
	case !d.Starts:
		verdict = "Servers do not start here."
	case d.Jailed != "":
		verdict = "Servers start on this kernel, but not from here: " + escape(d.Jailed) + "."
	}
	_, err := fmt.Fprintf(w, "\n%s\n", verdict)
	return err
}
