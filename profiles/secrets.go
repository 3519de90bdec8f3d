package profiles

import (
	"fmt"
	"slices"
	"strings"
)

// Secret is one entry of environment.secrets: a name, or a mapping that says that the
// server can do without.
type Secret struct {
	Name     string
	Optional bool // passed when the host has it; otherwise its absence is an error
	Position
}

// secretKeys are the keys of an entry that is a mapping.
var secretKeys = []string{"name", "optional"}

// secrets reads the entries of environment.secrets.
func (r *reader) secrets(k *key, path string, items []node) []Secret {
	var out []Secret
	for i := range items {
		n := &items[i]
		s := Secret{Position: r.at(n)}
		before := len(r.errs)
		switch n.kind {
		case textNode:
			r.secretName(k, path, n, &s)
		case mapNode:
			r.secretKeys(k, path, n, &s)
			if s.Name == "" && len(r.errs) == before {
				r.fail(n, "write {name: NAME, optional: true}", "%s: the entry has no name", path)
			}
		default:
			r.fail(n, "write NAME, or {name: NAME, optional: true}", "%s: expected a variable, found %s", path, n.what())
		}
		if len(r.errs) == before {
			out = append(out, s)
		}
	}
	return out
}

func (r *reader) secretName(k *key, path string, n *node, s *Secret) {
	text, ok := r.scalar(path, n)
	if !ok {
		return
	}
	name, bad := k.check(text)
	if bad != nil {
		r.add(n, bad)
		return
	}
	s.Name, s.Position = name, r.at(n)
}

func (r *reader) secretKeys(k *key, path string, n *node, s *Secret) {
	lines := map[string]int{}
	for i := range n.pairs {
		name, value := &n.pairs[i].key, &n.pairs[i].value
		if lines[name.text] > 0 {
			r.fail(name, "keep one of them", "key %q is already written in line %d", name.text, lines[name.text])
			continue
		}
		lines[name.text] = name.line
		switch name.text {
		case "name":
			r.secretName(k, path+".name", value, s)
		case "optional":
			plain := value.kind == textNode && value.plain
			switch {
			case plain && value.text == "true":
				s.Optional = true
			case plain && value.text == "false":
			default:
				r.fail(value, "write true or false", "%s.optional: expected true or false", path)
			}
		default:
			hint := "known here: " + strings.Join(secretKeys, ", ")
			if near := nearest(name.text, secretKeys); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			r.fail(name, hint, "unknown key %q in an entry of %q", name.text, path)
		}
	}
}

// secrets passes the secrets of the profile. An empty one is none: a server that takes
// another way without a token would take its absence for one.
func (c *compiler) secrets(env map[string]string) {
	var absent []string
	for _, s := range c.profile.Environment.Secrets {
		value, ok := c.facts.Env[s.Name]
		switch {
		case value != "":
			env[s.Name] = value
		case s.Optional:
			absent = append(absent, s.Name)
		case !ok:
			c.fail(s.Position, wrong(fmt.Sprintf("set it in the host's configuration of this server; if the server can do without, write {name: %s, optional: true}", s.Name),
				"environment.secrets: %s is not set in the host's environment", s.Name))
		default:
			c.fail(s.Position, wrong("set it in the host's configuration of this server", "environment.secrets: %s is empty", s.Name))
		}
	}
	if len(absent) > 0 {
		slices.Sort(absent)
		c.out.Notes = append(c.out.Notes, "environment.secrets: optional, and not set or empty in the host's environment: "+strings.Join(absent, " "))
	}
}

// secrets compares how two profiles hold the variables that both plans pass. That one is no
// longer secret widens: the promise that nobody sees it is gone.
func (d *differ) secrets(a, b *Resolved) {
	before, after := variables(&a.Plan), variables(&b.Plan)
	for _, name := range sortedKeys(after) {
		if _, both := before[name]; !both {
			continue
		}
		was, is := a.Profile.secret(name), b.Profile.secret(name)
		switch {
		case was == nil && is != nil:
			d.add("environment", Added, "secrecy of variable "+name, Narrowing)
		case was != nil && is == nil:
			d.add("environment", Removed, "secrecy of variable "+name, Widening)
		}
	}
	for _, is := range b.Profile.Environment.Secrets {
		if was := a.Profile.secret(is.Name); was != nil && was.Optional != is.Optional {
			word := "required"
			if is.Optional {
				word = "optional"
			}
			d.add("environment", Changed, "secret "+is.Name+": "+word, Neutral)
		}
	}
}

func (p *Profile) secret(name string) *Secret {
	list := p.Environment.Secrets
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}
