package verify

// Outcome is what a check found.
type Outcome string

const (
	// Holds: the answer was the expected one.
	Holds Outcome = "holds"
	// Weaker: the answer was another one.
	Weaker Outcome = "weaker"
	// CannotTell: the operation does not work outside either, so its refusal proves
	// nothing. It counts as weaker.
	CannotTell Outcome = "cannot tell"
)

// Result is a check with its outcome.
type Result struct {
	Check
	Outcome Outcome `json:"outcome"`
	Got     string  `json:"got"` // errno name, "" for success, or what was found instead
}

// Strong tells whether every check was run and holds.
func Strong(checks []Check, results []Result) bool {
	if len(checks) == 0 || len(results) != len(checks) {
		return false
	}
	for _, r := range results {
		if r.Outcome != Holds {
			return false
		}
	}
	return true
}
