package nettest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"stockade/nettest"
)

// TestOutside is the control: without a jail every client gets everything that it asks for,
// the bad targets too, so no denial in [TestJailed] comes from the network or the client.
func TestOutside(t *testing.T) {
	n := nettest.Get(t)
	eachScenario(t, func(t *testing.T, s scenario, c client) {
		mark := n.Mark(t)
		asks, rows := s.asks(c)
		outcomes := c.ask(t, n, plain{}, "", asks)
		for i, o := range outcomes {
			judge(t, c, o, rows[i].outside)
		}
		// What the jailed twin counts is counted.
		if len(n.Hits(t, mark)) == 0 && len(n.Queries(mark)) == 0 {
			t.Error("the network saw nothing of it")
		}
	})
}

// TestJailed runs the same asks in a jail.
func TestJailed(t *testing.T) {
	n := nettest.Get(t)
	eachScenario(t, func(t *testing.T, s scenario, c client) {
		mark := n.Mark(t)
		asks, rows := s.asks(c)
		outcomes := c.ask(t, n, jailed{}, s.section(c), asks)
		for i, o := range outcomes {
			judge(t, c, o, rows[i].inside)
		}
		n.Untouched(t, mark, s.untouched...)
		n.Unasked(t, mark, s.unasked...)
		n.Unheard(t, mark, s.unheard...)
	})
}

// eachScenario runs a subtest for every scenario and client that has something to ask in it.
func eachScenario(t *testing.T, test func(t *testing.T, s scenario, c client)) {
	t.Helper()
	n := nettest.Get(t)
	for _, s := range slices.Concat(scenarios, specialScenarios) {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range clients {
				if asks, _ := s.asks(c); len(asks) == 0 {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					if s.prepare != nil {
						s.prepare(n)
					}
					test(t, s, c)
				})
			}
		})
	}
}

func (s scenario) asks(c client) (asks []string, rows []row) {
	for _, r := range s.rows {
		ask := strings.ReplaceAll(r.ask, "SCHEME", c.scheme)
		if c.can(ask) && !slices.Contains(r.skip, c.name) {
			asks, rows = append(asks, ask), append(rows, r)
		}
	}
	return asks, rows
}

// section is the scenario's network section for a client.
func (s scenario) section(c client) string {
	port := map[string]int{"https": nettest.HTTPSPort, "http": nettest.HTTPPort}[c.scheme]
	return strings.ReplaceAll(s.network, "SCHEMEPORT", fmt.Sprint(port))
}

func judge(t *testing.T, c client, o outcome, w want) {
	t.Helper()
	if wrong := w(c, o); wrong != "" {
		t.Errorf("%s: %s; got ok %v, code %q, text %q", o.Ask, wrong, o.OK, o.Code, o.Text)
	}
}

func TestMain(m *testing.M) { nettest.Main(m, caseVictims) }
