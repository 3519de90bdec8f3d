package sandbox

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// Verdict is what a probe found out.
type Verdict uint8

const (
	// Unknown: the kernel did not say. It counts as absent.
	Unknown Verdict = iota
	// Absent: the kernel lacks the layer, or refuses it here.
	Absent
	// Present: the layer works.
	Present
)

// String returns the word that doctor prints.
func (v Verdict) String() string {
	switch v {
	case Absent:
		return "absent"
	case Present:
		return "present"
	default:
		return "unknown"
	}
}

// ProbeResult is what this kernel can do for one layer.
type ProbeResult struct {
	Layer   Layer
	Verdict Verdict
	Since   string // the Linux version that brought it
	Detail  string // what was found
	Without string // what a jail lacks without it
}

// Probe asks the running kernel for each layer, in the order of enforcement. It restricts
// nothing.
func Probe() []ProbeResult {
	out := []ProbeResult{
		probeCloseRange(), probeCapabilities(), probeNoNewPrivs(),
	}
	out = append(out, probeLandlock()...)
	return append(out, probeSeccomp(), probeCgroup())
}

func probeLandlock() []ProbeResult {
	abi, err := LandlockABI()
	out := make([]ProbeResult, 0, len(landlockNeeds))
	for _, n := range landlockNeeds {
		r := ProbeResult{Layer: n.layer, Since: n.since, Without: without(n)}
		switch {
		case err != nil:
			r.Detail = err.Error()
		case abi >= n.abi:
			r.Verdict, r.Detail = Present, "holds "+n.present
		default:
			r.Verdict, r.Detail = Absent, fmt.Sprintf("needs ABI %d, this kernel has %s", n.abi, abiName(abi))
		}
		out = append(out, r)
	}
	return out
}

// without says what the layer's absence means for a plan.
func without(n landlockNeed) string {
	switch {
	case n.layer == LayerTCP:
		return "nothing, unless the profile lists network.listen ports: then servers do not start"
	case n.layer == LayerTruncate:
		return "nothing: " + n.covered
	case n.covered != "":
		return "nothing: " + n.covered
	case n.waiver == NeverWaived:
		return "servers do not start"
	}
	return "servers do not start, unless the profile waives it; then " + n.lost()
}

// probeSeccomp asks for an action that every filter of ours uses. SECCOMP_GET_ACTION_AVAIL
// (2) is Linux 4.14; before it the answer is EINVAL and PR_GET_SECCOMP decides.
func probeSeccomp() ProbeResult {
	r := ProbeResult{Layer: LayerSeccomp, Since: "Linux 3.17", Without: "servers do not start"}
	mode, err := unix.PrctlRetInt(unix.PR_GET_SECCOMP, 0, 0, 0, 0)
	switch {
	case errors.Is(err, unix.EINVAL):
		r.Verdict, r.Detail = Absent, "not built into this kernel"
	case err != nil:
		r.Detail = err.Error()
	case mode == 2:
		r.Verdict, r.Detail = Present, "filters can be added; this process runs under one already"
	default:
		r.Verdict, r.Detail = Present, "filters can be added"
	}
	return r
}

func probeNoNewPrivs() ProbeResult {
	r := ProbeResult{Layer: LayerNoNewPrivs, Since: "Linux 3.5", Without: "servers do not start"}
	if _, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err != nil {
		r.Verdict, r.Detail = Absent, err.Error()
		return r
	}
	r.Verdict, r.Detail = Present, "set-id programs gain nothing"
	return r
}

func probeCapabilities() ProbeResult {
	r := ProbeResult{Layer: LayerCapabilities, Since: "Linux 4.3", Without: "servers do not start"}
	has, err := hasCapability(unix.CAP_SETPCAP)
	switch {
	case err != nil:
		r.Detail = err.Error()
	case has:
		r.Verdict, r.Detail = Present, "all sets can be emptied, the bounding one too"
	default:
		r.Verdict, r.Detail = Present, "all sets can be emptied; the bounding one stays, and no_new_privs keeps it out of reach"
	}
	return r
}

// probeCloseRange closes a range that is empty: above the highest descriptor there can be.
func probeCloseRange() ProbeResult {
	r := ProbeResult{Layer: LayerDescriptors, Since: "Linux 5.11", Without: "servers do not start"}
	err := unix.CloseRange(math.MaxInt32, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	switch {
	case err == nil:
		r.Verdict, r.Detail = Present, "close_range(2) closes what the host left open"
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL):
		r.Verdict, r.Detail = Absent, err.Error()
	default:
		r.Detail = err.Error()
	}
	return r
}

func probeCgroup() ProbeResult {
	r := ProbeResult{
		Layer: LayerCgroup, Since: "Linux 4.5",
		Without: "nothing, unless the profile asks for limits.memory or limits.processes: then servers do not start",
	}
	own, err := ownCgroup("/proc/self/cgroup", "/proc/self/mountinfo")
	if err != nil {
		r.Verdict, r.Detail = Absent, err.Error()
		return r
	}
	parent, ok := delegated(own, Limits{Memory: 1, Processes: 1})
	if !ok {
		r.Verdict, r.Detail = Absent, "no delegated folder with the memory and pids controllers near "+own
		return r
	}
	r.Verdict, r.Detail = Present, "limits can be set below "+parent
	return r
}
