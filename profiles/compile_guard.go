package profiles

import (
	"slices"
	"time"

	"stockade/sandbox/guard"
)

// guard makes the policy of the guard; nil without the section.
func (c *compiler) guard() *guard.Policy {
	g := c.profile.Guard
	if g == nil {
		return nil
	}
	p := &guard.Policy{
		Listed:          g.ToolsAt != Position{},
		Tools:           sortedNames(g.Tools),
		CallsPerMinute:  int(g.CallsPerMinute.Value),  //nolint:gosec // at most 2^32
		ConcurrentCalls: int(g.ConcurrentCalls.Value), //nolint:gosec // at most 2^20
		MessageSize:     guard.DefaultMessageSize,
		ResultSize:      int(g.ResultSize.Value), //nolint:gosec // at most 2^40
		Sampling:        guardWord(g.Sampling.Value),
		Elicitation:     guardWord(g.Elicitation.Value),
		Roots:           guardWord(g.Roots.Value),
	}
	if g.MessageSize.written() {
		p.MessageSize = int(g.MessageSize.Value) //nolint:gosec // at most 2^40
	}
	if g.CallTimeout.written() {
		var err error
		if p.CallTimeout, err = time.ParseDuration(g.CallTimeout.Value); err != nil {
			c.fail(g.CallTimeout.Position, wrong("write a number with a unit: 60s, 2m", "guard.call-timeout: %q is not a duration", g.CallTimeout.Value))
		}
	}
	if p.ResultSize >= p.MessageSize && p.ResultSize > 0 {
		c.fail(g.ResultSize.Position, wrong("write a smaller one, or remove the key", "guard.result-size: a result lies in a message, and message-size is %d bytes", p.MessageSize))
	}
	return p
}

func guardWord(word string) guard.Word {
	if word == wordAllow {
		return guard.Allow
	}
	return guard.Deny
}

// openGuard says what a guard leaves open.
func (c *compiler) openGuard() {
	g := c.out.Plan.Guard
	if g == nil {
		return
	}
	c.stays(promiseMessages, "what a tool does with its arguments, and what its description and its results tell the model, is not judged; definitions are not pinned")
	if !c.out.Plan.Mediated() {
		c.stays(promiseMessages, "the server ends with the guard, unless it takes back the signal that ties it to its parent (PR_SET_PDEATHSIG): then it goes on in its jail, with nobody to speak to")
	}
	if !g.Listed {
		c.stays(promiseMessages, "every tool that the server has can be called: guard.tools is not written")
	}
	for _, one := range [...]struct {
		word guard.Word
		open string
	}{
		{g.Sampling, "the server may put prompts to the host's model (guard.sampling)"},
		{g.Elicitation, "the server may ask the person for anything (guard.elicitation)"},
		{g.Roots, "the server is told which folders the host works on (guard.roots)"},
	} {
		if one.word == guard.Allow {
			c.stays(promiseMessages, one.open)
		}
	}
}

// guard compares two guards. Without one, everything passes.
func (d *differ) guard(a, b *guard.Policy) {
	const section = "guard"
	switch {
	case a == nil && b == nil:
		return
	case a == nil:
		d.add(section, Added, "guard", Narrowing)
		return
	case b == nil:
		d.add(section, Removed, "guard", Widening)
		return
	}
	switch {
	case a.Listed && !b.Listed:
		d.add(section, Removed, "list of tools", Widening)
	case !a.Listed && b.Listed:
		d.add(section, Added, "list of tools", Narrowing)
	case !slices.Equal(a.Tools, b.Tools):
		d.set(section, "tools ", a.Tools, b.Tools, Widening, Narrowing)
	}
	for _, l := range [...]struct {
		name          string
		before, after int64
	}{
		{"calls-per-minute", int64(a.CallsPerMinute), int64(b.CallsPerMinute)},
		{"concurrent-calls", int64(a.ConcurrentCalls), int64(b.ConcurrentCalls)},
		{"call-timeout", int64(a.CallTimeout), int64(b.CallTimeout)},
		{"message-size", int64(a.MessageSize), int64(b.MessageSize)},
		{"result-size", int64(a.ResultSize), int64(b.ResultSize)},
	} {
		switch {
		case l.before == l.after:
		case l.before == 0:
			d.add(section, Added, l.name, Narrowing)
		case l.after == 0:
			d.add(section, Removed, l.name, Widening)
		case l.after < l.before:
			d.add(section, Changed, l.name, Narrowing)
		default:
			d.add(section, Changed, l.name, Widening)
		}
	}
	for _, w := range [...]struct {
		name          string
		before, after guard.Word
	}{{"sampling", a.Sampling, b.Sampling}, {"elicitation", a.Elicitation, b.Elicitation}, {"roots", a.Roots, b.Roots}} {
		if w.before == w.after {
			continue
		}
		effect := Narrowing
		if w.after == guard.Allow {
			effect = Widening
		}
		d.add(section, Changed, w.name+" "+w.after.String(), effect)
	}
}
