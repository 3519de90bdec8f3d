package seccomp

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
)

//go:generate go run calls_generate.go

// architecture is what the filter has to know about one machine kind.
type architecture struct {
	name   string     // as in GOARCH
	spec   specs.Arch // as in the runtime-spec
	audit  uint32     // AUDIT_ARCH_*, linux/audit.h
	column int        // of callTable
	// foreign is the first number of another ABI under the same audit architecture: x32
	// sets bit 30. 0 when there is none.
	foreign uint32
}

var architectures = [...]architecture{
	{name: "amd64", spec: specs.ArchX86_64, audit: 0xc000003e, column: 1, foreign: 0x40000000},
	{name: "arm64", spec: specs.ArchAARCH64, audit: 0xc00000b7, column: 2},
}

// architectureOf finds an architecture by its GOARCH name. On one that is not listed there
// is no filter at all: numbers differ, and a wrong number is a hole.
func architectureOf(arch string) (architecture, error) {
	for _, a := range architectures {
		if a.name == arch {
			return a, nil
		}
	}
	return architecture{}, fmt.Errorf("finding the system calls of %q: only amd64 and arm64 are supported", arch)
}

// calls returns the numbers of all system calls of the architecture, by the kernel's name.
func (a architecture) calls() (map[string]uint32, error) {
	calls := make(map[string]uint32, 400)
	for line := range strings.Lines(callTable) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return nil, fmt.Errorf("reading the call table: bad line %q", line)
		}
		if fields[a.column] == "-" {
			continue
		}
		number, err := strconv.ParseUint(fields[a.column], 10, 16)
		if err != nil {
			return nil, fmt.Errorf("reading the call table: number of %s: %w", fields[0], err)
		}
		calls[fields[0]] = uint32(number)
	}
	return calls, nil
}

// knownSomewhere says whether a name exists on any supported architecture.
func knownSomewhere(name string) bool {
	return strings.HasPrefix(callTable, name+" ") || strings.Contains(callTable, "\n"+name+" ")
}

// nearest returns the call whose name is closest to a mistyped one; "" when none is close.
func nearest(name string) string {
	best, bestDistance := "", len(name)/3+1
	for line := range strings.Lines(callTable) {
		candidate, _, _ := strings.Cut(line, " ")
		if d := distance(name, candidate); d < bestDistance || d == bestDistance && best == "" {
			best, bestDistance = candidate, d
		}
	}
	return best
}

// distance counts the single-letter edits between two names.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(diagonal+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
