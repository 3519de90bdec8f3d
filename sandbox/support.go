package sandbox

import (
	"fmt"
	"slices"

	"stockade/seccomp"
)

// landlockNeed is one Landlock layer: from which ABI the kernel has it, and what a plan
// loses without it.
type landlockNeed struct {
	layer  Layer
	abi    int
	since  string
	waiver Waiver
	// needed tells whether a plan leans on the layer; when it does not, covered says which
	// other layer keeps the promise.
	needed  func(Plan) bool
	covered string
	present string // what the layer holds, for reports
}

var landlockNeeds = [...]landlockNeed{
	{LayerFiles, 1, "Linux 5.13", NeverWaived, always, "", "files, folders and programs outside the grants"},
	{LayerRefer, 2, "Linux 5.19", MayBeWaived, always, "", "moves and links between folders"},
	{LayerTruncate, 3, "Linux 6.2", MayBeWaived, truncateUncovered, "the filter refuses truncate(2) and truncating opens", "cutting files short"},
	{LayerTCP, 4, "Linux 6.7", MayBeWaived, listens, "the filter refuses the sockets", "TCP ports"},
	{LayerIoctlDev, 5, "Linux 6.10", MayBeWaived, never, "only harmless device nodes are granted", "ioctl on devices"},
	{LayerScopeSignals, 6, "Linux 6.12", MayBeWaived, always, "", "signals to processes outside"},
	{LayerScopeAbstract, 6, "Linux 6.12", MayBeWaived, never, "the filter refuses Unix sockets", "abstract Unix sockets outside"},
	{LayerUnix, 9, "Linux 7.1", MayBeWaived, never, "the filter refuses Unix sockets", "Unix sockets by path"},
	{LayerUDP, 10, "Landlock ABI 10", MayBeWaived, never, "the filter refuses the sockets", "UDP"},
}

// lost says what the absence of a layer means. Without the refer right the kernel refuses
// every move between folders (landlock(7)): nothing opens, but servers that move fail.
func (n landlockNeed) lost() string {
	if n.layer == LayerRefer {
		return n.present + " fail"
	}
	return n.present + " stay open"
}

func always(Plan) bool    { return true }
func never(Plan) bool     { return false }
func listens(p Plan) bool { return len(p.Network.Listen) > 0 }

func truncateUncovered(p Plan) bool {
	return p.Filter.Truncation != seccomp.TruncationByFilter
}

// supportOf says what each Landlock layer will do for a plan on a kernel with an ABI (0:
// no Landlock). It is pure. The error is an *[UnsupportedError] for the first layer that
// the plan needs, the ABI lacks, and Missing does not name.
func supportOf(p Plan, abi int) ([]LayerReport, error) {
	out := make([]LayerReport, 0, len(landlockNeeds)+8)
	for _, n := range landlockNeeds {
		switch {
		case abi >= n.abi && offByPlan(p, n.layer):
			out = append(out, LayerReport{n.layer, Off, "network.egress: all leaves it open"})
		case abi >= n.abi:
			out = append(out, LayerReport{n.layer, Enforced, n.present})
		case !n.needed(p) && offByPlan(p, n.layer):
			out = append(out, LayerReport{n.layer, Off, "network.egress: all leaves it open"})
		case !n.needed(p):
			out = append(out, LayerReport{n.layer, Enforced, n.covered})
		case n.waiver == MayBeWaived && slices.Contains(p.Missing, n.layer):
			out = append(out, LayerReport{n.layer, Degraded, "this kernel lacks it: " + n.lost()})
		default:
			return nil, &UnsupportedError{
				Layer: n.layer, Need: fmt.Sprintf("Landlock ABI %d", n.abi),
				Have: abiName(abi), Since: n.since, Waivable: n.waiver,
			}
		}
	}
	return out, nil
}

// offByPlan reports network layers that the plan itself leaves open.
func offByPlan(p Plan, l Layer) bool {
	if p.Network.Egress != EgressAll {
		return false
	}
	return l == LayerUDP || l == LayerTCP && !listens(p)
}

func abiName(abi int) string {
	if abi <= 0 {
		return "no Landlock"
	}
	return fmt.Sprintf("ABI %d", abi)
}

// Waivable lists the layers that a profile may name in `missing: {allow: [...]}`.
func Waivable() []Layer {
	var out []Layer
	for _, n := range landlockNeeds {
		if n.waiver == MayBeWaived {
			out = append(out, n.layer)
		}
	}
	return out
}
