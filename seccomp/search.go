package seccomp

// span is a range of values with one outcome. It ends where the next one begins, the last
// one at the largest word.
type span struct {
	first  uint32
	weight int // how many values of it are asked for, as far as the cost of a step goes
	target *node
}

// Costs of a program, relative to each other. Installing one makes the kernel translate
// each instruction (110 ns) and walk through the program for every call number, to remember
// which are always allowed (2 ns a step; Linux 6.18 on a 3 GHz machine).
const (
	instructionCost = 55
	stepCost        = 1
)

// search finds the value in the accumulator among spans, which begin at 0 and are sorted.
// It returns the cheapest tree of comparisons: each either cuts the spans in two, or, where
// all but single values have one outcome, names these values one after the other.
func (g *graph) search(spans []span) *node {
	s := &searching{graph: g, spans: join(spans)}
	n := len(s.spans)
	s.best = make([][]choice, n)
	for i := range s.best {
		s.best[i] = make([]choice, n)
	}
	for width := 2; width <= n; width++ {
		for i := 0; i+width <= n; i++ {
			s.choose(i, i+width-1)
		}
	}
	return s.tree(0, n-1)
}

// join makes one span of neighbours with the same outcome.
func join(spans []span) []span {
	joined := make([]span, 0, len(spans))
	for _, s := range spans {
		if last := len(joined) - 1; last >= 0 && joined[last].target == s.target {
			joined[last].weight += s.weight
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// choice is the best way to search a run of spans.
type choice struct {
	cost int
	// base is the outcome of all but single values; nil when the run is cut in two.
	base *node
	cut  int // the right part begins there
}

type searching struct {
	graph *graph
	spans []span
	best  [][]choice // by first and last span of a run
}

// single says whether a span is one value.
func (s *searching) single(i int) bool {
	return i+1 < len(s.spans) && s.spans[i+1].first == s.spans[i].first+1 ||
		i+1 == len(s.spans) && s.spans[i].first == ^uint32(0)
}

// choose decides on the run from i to j, when all shorter runs are decided.
func (s *searching) choose(i, j int) {
	best := choice{cost: -1}
	for cut := i + 1; cut <= j; cut++ {
		if cost := s.best[i][cut-1].cost + s.best[cut][j].cost; best.cost < 0 || cost < best.cost {
			best.cost, best.cut = cost, cut
		}
	}
	best.cost += instructionCost
	for k := i; k <= j; k++ {
		best.cost += stepCost * s.spans[k].weight
	}
	// All spans of more than one value are the base; a run of single values has its last.
	base := s.spans[j].target
	for k := i; k <= j; k++ {
		if !s.single(k) {
			base = s.spans[k].target
			break
		}
	}
	if cost, possible := s.naming(i, j, base); possible && cost <= best.cost {
		best = choice{cost: cost, base: base}
	}
	s.best[i][j] = best
}

// naming returns what it costs to compare with each single value that is not the base's.
func (s *searching) naming(i, j int, base *node) (cost int, possible bool) {
	named, rest := 0, 0
	for k := i; k <= j; k++ {
		if s.spans[k].target == base {
			rest += s.spans[k].weight
			continue
		}
		if !s.single(k) {
			return 0, false
		}
		named++
		cost += instructionCost + stepCost*named*s.spans[k].weight
	}
	return cost + stepCost*named*rest, true
}

func (s *searching) tree(i, j int) *node {
	c := s.best[i][j]
	switch {
	case i == j:
		return s.spans[i].target
	case c.base == nil:
		return s.graph.jump(jumpFrom, s.spans[c.cut].first, s.tree(c.cut, j), s.tree(i, c.cut-1))
	}
	tree := c.base
	for k := j; k >= i; k-- {
		if s.spans[k].target != c.base {
			tree = s.graph.jump(jumpEqual, s.spans[k].first, s.spans[k].target, tree)
		}
	}
	return tree
}
