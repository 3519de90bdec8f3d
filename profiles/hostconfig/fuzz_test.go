package hostconfig_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v4"

	"stockade/profiles/hostconfig"
)

// decoder reads a whole file the way a host would, with another reader than the package's
// own tree where there is one.
type decoder func([]byte) (map[string]any, error)

func decodeJSON(src []byte) (out map[string]any, err error) {
	plain, err := hujson.Standardize(bytes.TrimPrefix(slices.Clone(src), []byte("\xef\xbb\xbf")))
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(plain, &out)
}

func decodeTOML(src []byte) (out map[string]any, err error) {
	return out, toml.Unmarshal(bytes.TrimPrefix(src, []byte("\xef\xbb\xbf")), &out)
}

func decodeYAML(src []byte) (out map[string]any, err error) {
	return out, yaml.Unmarshal(src, &out)
}

// check does everything to one text: it must not panic, and what comes out must keep the
// promises of the package, seen from outside. It returns how many entries were wrapped.
func check(t *testing.T, src []byte, p hostconfig.Place, decode decoder) int {
	t.Helper()
	f, err := hostconfig.Parse("f", src, p)
	if err != nil {
		positioned(t, err)
		return 0
	}
	var refs []hostconfig.Ref
	var edits []hostconfig.Edit
	for i := range f.Servers {
		s := &f.Servers[i]
		checkVariables(t, f, s, p)
		edit := hostconfig.Edit{Ref: s.Ref, Launcher: "/opt/x y/stockade", Words: []string{"--profile", "p q\"\\é"}}
		out, err := f.Wrap(edit)
		if err != nil {
			positioned(t, err)
			continue
		}
		if s.Wrapped != nil {
			if !bytes.Equal(out, src) {
				t.Fatalf("wrapping a wrapped entry changed\n%q to\n%q", src, out)
			}
			if back, err := f.Unwrap(s.Ref); err == nil {
				if _, err := hostconfig.Parse("f", back, p); err != nil {
					t.Fatalf("unwrapping\n%q gave\n%q: %v", src, back, err)
				}
			} else {
				positioned(t, err)
			}
			continue
		}
		checkDecoded(t, src, out, s, p, &edit, decode)
		refs, edits = append(refs, s.Ref), append(edits, edit)
	}
	out, err := f.Wrap(edits...)
	if err != nil {
		t.Fatalf("each alone can be wrapped, but not all, in\n%q: %v", src, err)
	}
	wrapped, err := hostconfig.Parse("f", out, p)
	if err != nil {
		t.Fatalf("the wrapped file\n%q: %v", out, err)
	}
	for i, s := range wrapped.Servers {
		if !slices.Equal(f.Servers[i].Own(), s.Own()) {
			t.Fatalf("the command line changed from\n%q to\n%q", f.Servers[i].Own(), s.Own())
		}
	}
	if twice, err := wrapped.Wrap(edits...); err != nil || !bytes.Equal(twice, out) {
		t.Fatalf("wrapping twice changed\n%q to\n%q (%v)", out, twice, err)
	}
	if back, err := wrapped.Unwrap(refs...); err != nil || !bytes.Equal(back, src) {
		t.Fatalf("unwrapping\n%q gave\n%q, not\n%q (%v)", out, back, src, err)
	}
	return len(refs)
}

// positioned wants an error of the package.
func positioned(t *testing.T, err error) {
	t.Helper()
	if bad, ok := errors.AsType[*hostconfig.Error](err); !ok || bad.Message == "" {
		t.Fatalf("an error without a place: %v", err)
	}
}

// checkDecoded compares what another reader makes of the wrapped file with what it makes of
// the first one, changed as the edit says.
func checkDecoded(t *testing.T, src, out []byte, s *hostconfig.Server, p hostconfig.Place, e *hostconfig.Edit, decode decoder) {
	t.Helper()
	shape := p.Shapes[0]
	if json.Valid(src) != json.Valid(out) {
		t.Fatalf("a host that bears neither comments nor trailing commas reads only one of\n%q and\n%q", src, out)
	}
	before, err := decode(src)
	if err != nil || len(p.Shapes) > 1 || len(shape.Path) != 1 || shape.List || shape.Keys.Nested || shape.Keys.Args == "" {
		return
	}
	after, err := decode(out)
	if err != nil {
		t.Fatalf("the wrapped file\n%q: %v", out, err)
	}
	servers, _ := before[shape.Path[0]].(map[string]any)
	entry, ok := servers[s.Name].(map[string]any)
	if !ok {
		return // the readers differ in how they spell a name that is no text
	}
	args := []any{"run", "--profile", e.Words[1], "--", entry[shape.Keys.Command]}
	if old, ok := entry[shape.Keys.Args].([]any); ok {
		args = append(args, old...)
	}
	entry[shape.Keys.Command], entry[shape.Keys.Args] = e.Launcher, args
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("another reader of\n%q sees (-want +got):\n%s", out, diff)
	}
}

// checkVariables replaces and removes every variable of an entry.
func checkVariables(t *testing.T, f *hostconfig.File, s *hostconfig.Server, p hostconfig.Place) {
	t.Helper()
	for i, v := range s.Env {
		for _, change := range []func() ([]byte, error){
			func() ([]byte, error) { return f.ReplaceVariable(s.Ref, v.Name, "${other} \"\\") },
			func() ([]byte, error) { return f.RemoveVariable(s.Ref, v.Name) },
		} {
			out, err := change()
			if err != nil {
				positioned(t, err)
				continue
			}
			after, err := hostconfig.Parse("f", out, p)
			if err != nil {
				t.Fatalf("after a variable was changed: %v in\n%q", err, out)
			}
			for _, other := range after.Servers {
				if other.Ref == s.Ref && len(other.Env) == len(s.Env) && other.Env[i].Value.Reveal() != "${other} \"\\" {
					t.Fatalf("the variable %q keeps its value in\n%q", v.Name, out)
				}
			}
		}
	}
}

func fuzzFormat(f *testing.F, format hostconfig.Format, layouts []layout, write func(dice) (string, int), decode decoder) {
	f.Helper()
	var places []hostconfig.Place
	for _, h := range hostconfig.Hosts {
		for _, p := range h.Files {
			if p.Format == format {
				places = append(places, p)
			}
		}
	}
	for _, l := range slices.Concat(layouts, refusedLayouts) {
		which := slices.IndexFunc(places, func(p hostconfig.Place) bool { return p.Path == place(f, l.file).Path })
		if which >= 0 {
			f.Add([]byte(l.before), byte(which))
			f.Add([]byte(l.after), byte(which))
		}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 40 {
		src, _ := write(dice{rng, []string{"\n", "\r\n"}[i%2]})
		for which, p := range places {
			if len(p.Shapes) == 1 && slices.Contains([]string{".mcp.json", ".codex/config.toml", "goose/config.yaml"}, p.Path) {
				f.Add([]byte(src), byte(which))
				break
			}
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, which byte) {
		check(t, src, places[int(which)%len(places)], decode)
		if _, _, err := hostconfig.Guess("f."+format.String(), src); err != nil {
			positioned(t, err)
		}
	})
}

func FuzzJSON(f *testing.F) { fuzzFormat(f, hostconfig.JSON, jsonLayouts, dice.json, decodeJSON) }

func FuzzTOML(f *testing.F) { fuzzFormat(f, hostconfig.TOML, tomlLayouts, dice.toml, decodeTOML) }

func FuzzYAML(f *testing.F) { fuzzFormat(f, hostconfig.YAML, yamlLayouts, dice.yaml, decodeYAML) }
