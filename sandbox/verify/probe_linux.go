package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// RunChecks is the probe: it reads a JSON list of checks, tries each on the calling
// process, and writes one JSON result a line, and at the end the line {"finished":true},
// without which a reader must not believe that all ran. Its answer is an exit status.
func RunChecks(r io.Reader, w io.Writer) int {
	var checks []Check
	if err := json.NewDecoder(r).Decode(&checks); err != nil {
		return 2
	}
	out := json.NewEncoder(w)
	for _, c := range checks {
		if err := out.Encode(Try(c)); err != nil {
			return 2
		}
	}
	if err := out.Encode(finish{Finished: true}); err != nil {
		return 2
	}
	return 0
}

type finish struct {
	Finished bool `json:"finished"`
}

// ReadResults reads what RunChecks wrote. It is an error when the finish line is missing.
func ReadResults(r io.Reader) ([]Result, error) {
	in := json.NewDecoder(r)
	var out []Result
	for {
		var line struct {
			Result
			finish
		}
		if err := in.Decode(&line); err != nil {
			return out, fmt.Errorf("reading what the probe found (it ended after %d checks): %w", len(out), err)
		}
		if line.Finished {
			return out, nil
		}
		out = append(out, line.Result)
	}
}

// Try runs one check here.
func Try(c Check) Result {
	err := c.Op.run(c)
	got := describe(err)
	r := Result{Check: c, Outcome: Weaker, Got: got}
	if got == c.Want {
		r.Outcome = Holds
	}
	return r
}

// TryOutside runs the checks that have to work outside, here and now, and returns the
// results of those that do not: their refusal inside proves nothing.
func TryOutside(checks []Check) []Result {
	var out []Result
	for _, c := range checks {
		if c.Outside != WorksOutside {
			continue
		}
		if err := c.Op.run(c); err != nil {
			out = append(out, Result{Check: c, Outcome: CannotTell, Got: "outside the jail: " + describe(err)})
		}
	}
	return out
}

// Merge replaces results of the jail by what was found outside, where that leaves them
// without proof.
func Merge(inside, outside []Result) []Result {
	for _, o := range outside {
		for i := range inside {
			if inside[i].Name == o.Name && inside[i].Layer == o.Layer {
				inside[i] = o
			}
		}
	}
	return inside
}

func describe(err error) string {
	if err == nil {
		return ""
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return err.Error()
}
