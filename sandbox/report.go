package sandbox

// State is what became of a layer.
type State uint8

const (
	// Enforced: the layer is on, by itself or by the layer that Detail names.
	Enforced State = iota + 1
	// Degraded: the kernel lacks it and the profile agreed to that.
	Degraded
	// Off: this plan does not need it.
	Off
)

// String returns the word that reports print.
func (s State) String() string {
	switch s {
	case Enforced:
		return "enforced"
	case Degraded:
		return "degraded"
	case Off:
		return "off"
	}
	return "unknown"
}

// LayerReport is what one layer did.
type LayerReport struct {
	Layer  Layer
	State  State
	Detail string
}

// Report lists every layer in the order of enforcement.
type Report struct {
	Layers []LayerReport
}

func (r *Report) enforced(l Layer, detail string) {
	r.Layers = append(r.Layers, LayerReport{Layer: l, State: Enforced, Detail: detail})
}
