package race_test

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"stockade/examples/stock"
	"stockade/race"
)

// callsPerRow keeps a pass over four versions and three methods near 15 s on two cores,
// with more than 5,000 calls that could leak.
const callsPerRow = 32

func TestMain(m *testing.M) {
	if race.IsSwapper() {
		if err := race.RunSwapper(os.Args[1:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if err := stock.Clean(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// stockade is the jail under test: the built-in profile, found by the server's package,
// with the server's own folder argument as the one root.
func stockade(t *testing.T) race.Jail {
	t.Helper()
	binary, err := stock.Binary()
	if err != nil {
		t.Fatal(err)
	}
	words := func(*race.Stage) []string { return []string{binary, "run", "--"} }
	return race.Jail{Name: "stockade", Words: words, Refusal: "EACCES"}
}

// all runs every version against every method, and returns what came of each.
func all(t *testing.T, jail race.Jail) []race.Result {
	t.Helper()
	var runs []race.Result
	for _, server := range stock.Filesystems {
		for _, method := range race.Methods {
			t.Run(server.Version+"/"+method.String(), func(t *testing.T) {
				config := race.Config{Server: server, Jail: jail, Method: method, Calls: callsPerRow, Rows: race.Rows}
				run, err := race.Run(t.Context(), config)
				for _, row := range run.Rows {
					t.Logf("%-32s %+v", row.Row, row.Tally)
				}
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%d turns, %+v", run.Turns, run.Tally)
				runs = append(runs, run)
			})
		}
	}
	return runs
}

// TestRaceControl shows that the attack works: without it, no leak in the jail would be
// no news.
func TestRaceControl(t *testing.T) {
	sum, err := race.Sum(race.Jail{}, all(t, race.Jail{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("unjailed: %+v", sum)
	if sum.Leaks == 0 {
		t.Errorf("no leak in %d unjailed calls: the attack does not work here", sum.Calls)
	}
}

// TestRaceJailed shows that nothing gets out of the jail, and that the server goes on
// serving in it: every run ends each row with an ordinary call that must be served, and
// the server must then exit by itself with status 0.
func TestRaceJailed(t *testing.T) {
	jail := stockade(t)
	runs := all(t, jail)
	sum, err := race.Sum(jail, runs)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("jailed: %+v", sum)
	if sum.Leaks != 0 {
		t.Errorf("%d leaks in %d jailed calls", sum.Leaks, sum.Calls)
	}
	if sum.Calls < 5000 {
		t.Errorf("only %d jailed calls, want at least 5000", sum.Calls)
	}
	for _, run := range runs {
		for _, note := range run.Notes {
			t.Log(note)
		}
	}
}

// TestRaceRefusesToProveNothing breaks the attack or the jail on purpose: the harness
// must not take that for a result.
func TestRaceRefusesToProveNothing(t *testing.T) {
	read := []race.Row{race.Rows[0]}
	tests := []struct {
		name string
		jail race.Jail
		rows []race.Row
	}{
		{
			name: "a server that does not start",
			jail: race.Jail{Words: func(*race.Stage) []string { return []string{"/bin/false"} }},
			rows: read,
		},
		{
			name: "a jail that refuses nothing",
			jail: race.Jail{Words: func(*race.Stage) []string { return []string{"/usr/bin/env"} }, Refusal: "EACCES"},
			rows: read,
		},
		{
			name: "no row that the server has a tool for",
			rows: []race.Row{{Name: "none", Tool: "no_such_tool"}},
		},
		{
			name: "ordinary calls that fail",
			rows: []race.Row{{
				Name: "read_file", Tool: "read_file",
				Args: func(s *race.Stage, _ stock.Server, _ int) map[string]any {
					return map[string]any{"path": s.Used("no-such-file")}
				},
				Served: race.Rows[0].Served,
			}},
		},
		{
			name: "calls that do not reach the real root",
			rows: []race.Row{{
				Name: "write_file", Tool: "write_file",
				Args: func(s *race.Stage, _ stock.Server, _ int) map[string]any {
					return map[string]any{"path": s.Root() + "/out/elsewhere", "content": "x"}
				},
				Served: func(*race.Stage, int, string) error { return errors.New("nothing came") },
			}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			config := race.Config{Server: stock.Filesystem062, Jail: tt.jail, Calls: 1, Rows: tt.rows}
			run, err := race.Run(t.Context(), config)
			if err == nil {
				_, err = race.Sum(tt.jail, []race.Result{run})
			}
			if !errors.Is(err, race.ErrInconclusive) {
				t.Errorf("got %v, want an error that is %v", err, race.ErrInconclusive)
			}
		})
	}
}
