package profiles_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stockade/profiles"
	"stockade/sandbox"
	"stockade/sandbox/egress"
)

// TestEgressEntries: what package egress says of a rule arrives with its place, and a rule
// stays as it is written.
func TestEgressEntries(t *testing.T) {
	tests := []struct{ entry, problem string }{
		{entry: "api.github.com"},
		{entry: "API.GitHub.com.:443"},
		{entry: "*.example.com:8000-8443"},
		{entry: "localhost:1"},
		{entry: "10.1.0.0/16:5432"},
		{entry: "[2001:DB8::1]:443"},
		{entry: "bücher.example:443"},

		{entry: "https://api.github.com", problem: `egress rule "https://api.github.com" is a URL | write "api.github.com:443"`},
		{entry: "a.example:0", problem: `egress rule "a.example:0" has port 0, which is none | a rule is one of HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT, PREFIX/LENGTH:PORT; IPv6 in brackets, ports from 1 to 65535, 443 when there is none`},
		{entry: "user@a.example:22", problem: `egress rule "user@a.example:22" names a user, which egress rules do not | write "a.example:22"`},
		{entry: "0x7f.1:80", problem: `egress rule "0x7f.1:80" has an address in an odd spelling | write "127.0.0.1:80"`},
		{entry: "metadata.google.internal:80", problem: `egress rule "metadata.google.internal:80" is a cloud's metadata service, which host rules do not reach | write its address, as in "169.254.169.254:80", if the server may have this machine's cloud credentials`},
		{entry: "none", problem: `"none" is not a host: it stands alone or not at all | write "egress: none" without a list`},
		{entry: "all", problem: `"all" is not a host: it stands alone or not at all | write "egress: all" without a list`},
		{entry: "None", problem: `"None" reads like the word none, not like a host | did you mean "none"? a host of that name is written with its port: "None:443"`},
		{entry: "nine", problem: `"nine" reads like the word none, not like a host | did you mean "none"? a host of that name is written with its port: "nine:443"`},
		{entry: "PUBLIC", problem: `"PUBLIC" reads like the word public, not like a host | did you mean "public"? a host of that name is written with its port: "PUBLIC:443"`},
		{entry: "pubic", problem: `"pubic" reads like the word public, not like a host | did you mean "public"? a host of that name is written with its port: "pubic:443"`},
		{entry: "pulbic", problem: `"pulbic" reads like the word public, not like a host | did you mean "public"? a host of that name is written with its port: "pulbic:443"`},
		{entry: "ALL", problem: `"ALL" reads like the word all, not like a host | did you mean "all"? a host of that name is written with its port: "ALL:443"`},
		{entry: "al", problem: `"al" reads like the word all, not like a host | did you mean "all"? a host of that name is written with its port: "al:443"`},
		{entry: "none:443"},
		{entry: "pubic:443"},
		{entry: "public.example"},
		{entry: "republic"},
		{entry: "", problem: `network.egress: the text is empty | write one, or remove it`},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			p, problem := parseOne(t, fmt.Sprintf("network:\n  egress: [%q]\n", tt.entry))
			if problem != tt.problem {
				t.Fatalf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
			if p == nil {
				return
			}
			want := []profiles.EgressRule{{To: tt.entry, Position: profiles.Position{File: "p.yaml", Line: 3, Column: 12}}}
			if diff := cmp.Diff(want, p.Network.Hosts); diff != "" {
				t.Errorf("rules (-want +got):\n%s", diff)
			}
			_, problem = parseOne(t, fmt.Sprintf("network:\n  egress: [{to: %q}]\n", tt.entry))
			if problem != "" {
				t.Errorf("in a mapping: %s", problem)
			}
		})
	}
}

func TestEgressMappings(t *testing.T) {
	const form = ` | write {to: "HOST:PORT", names: pinned}`
	tests := []struct{ entry, problem string }{
		{"{to: a.example, names: pinned}", ""},
		{"{names: strict, to: \"a.example:443\"}", ""},
		{"{to: \"a.example:20-90\", names: strict}", ""},
		{"{to: \"a.example:22\", names: pinned}", ""},

		{"{names: pinned}", "network.egress: the entry has no host" + form},
		{"{}", "network.egress: the entry has no host" + form},
		{"{to: }", "network.egress.to: no value | write one, or remove the key; text that means nothing to YAML needs quotes"},
		{"{to: [a.example]}", "network.egress.to: expected text, found a list"},
		{"{to: \"a.example:0\"}", `egress rule "a.example:0" has port 0, which is none | a rule is one of HOST, HOST:PORT, HOST:FIRST-LAST, *.DOMAIN:PORT, ADDRESS:PORT, PREFIX/LENGTH:PORT; IPv6 in brackets, ports from 1 to 65535, 443 when there is none`},
		{"{to: public}", `"public" is a word and not a host | write public in the list itself, or "public:443" for a host of that name`},
		{"{to: Public}", `"Public" reads like the word public, not like a host | did you mean "public"? a host of that name is written with its port: "Public:443"`},
		{"{to: a.example, names: pined}", `network.egress.names: "pined" is not known | did you mean "pinned"?`},
		{"{to: a.example, names: }", "network.egress.names: no value | write one, or remove the key; text that means nothing to YAML needs quotes"},
		{"{to: a.example, name: pinned}", `unknown key "name" in an entry of "network.egress" | did you mean "names"?`},
		{"{to: a.example, to: b.example}", `key "to" is already written in line 3 | keep one of them`},
		{"{to: \"10.0.0.1:443\", names: pinned}", `"10.0.0.1:443" is an address: there is no name to hold | remove names`},
		{"{to: \"a.example:22\", names: strict}", `names: strict holds on TLS and HTTP ports (80, 443, 8080, 8443), and "a.example:22" has none of them | remove it: other ports are held by address`},
		{"{to: nexus.example, addresses: any}", ""},
		{"{to: \"*.corp.example:1-65535\", names: pinned, addresses: any}", ""},
		{"{to: a.example, addresses: ordinary}", ""},
		{"{to: a.example, addresses: all}", `network.egress.addresses: "all" is not known | write any or ordinary`},
		{"{to: a.example, addresses: [any]}", "network.egress.addresses: expected text, found a list"},
		{"{to: a.example, addresses: }", "network.egress.addresses: no value | write one, or remove the key; text that means nothing to YAML needs quotes"},
		{"{to: a.example, address: any}", `unknown key "address" in an entry of "network.egress" | did you mean "addresses"?`},
		{"{to: \"10.0.0.1:443\", addresses: any}", `"10.0.0.1:443" is an address: such a rule leads there, whatever it is | remove addresses`},
		{"{to: \"localhost:80\", addresses: any}", `"localhost:80" is an address: such a rule leads there, whatever it is | remove addresses`},
		{"{addresses: any}", "network.egress: the entry has no host" + form},
		{"[a.example]", `network.egress: expected a rule, found a list | write HOST:PORT, or {to: "HOST:PORT", names: pinned}`},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			if _, problem := parseOne(t, "network:\n  egress: ["+tt.entry+"]\n"); problem != tt.problem {
				t.Errorf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
		})
	}
}

func TestSocketPaths(t *testing.T) {
	tests := []struct{ entry, problem string }{
		{"/run/x.sock", ""},
		{"${runtime}/x", ""},
		{"unix:///run/x.sock", `"unix:///run/x.sock" is an address and not a path | write "/run/x.sock"`},
		{"unix:path=/run/x", `"unix:path=/run/x" is an address and not a path | write "/run/x"`},
		{"@abstract", `"@abstract" is an abstract socket: there is no file that could be granted | use a socket file`},
		{"/run/x/", `"/run/x/" is a folder | name the socket file itself`},
	}
	for _, tt := range tests {
		t.Run(tt.entry, func(t *testing.T) {
			if _, problem := parseOne(t, fmt.Sprintf("network:\n  unix: [%q]\n", tt.entry)); problem != tt.problem {
				t.Errorf("problem:\n got %s\nwant %s", problem, tt.problem)
			}
		})
	}
}

// rulesText writes a plan's egress, one rule a line.
func rulesText(n sandbox.Network) string {
	var b strings.Builder
	if n.Egress == sandbox.EgressRules {
		b.WriteString(n.Rules.Mode.String() + "\n")
	}
	for _, r := range n.Rules.Rules {
		words := r.Names.String()
		if r.Addresses != egress.Ordinary {
			words += " " + r.Addresses.String()
		}
		fmt.Fprintf(&b, "%s %s %s [%s]\n", r, words, r.Text, r.Origin)
	}
	return b.String()
}

func TestCompileEgress(t *testing.T) {
	tests := []struct {
		name, src string
		flags     []string
		want      string
	}{
		{"list", "network: {egress: [API.example.com., \"10.1.0.0/16:5432\"]}", nil, "list\napi.example.com:443 strict API.example.com. [p.yaml:3:20]\n10.1.0.0/16:5432 strict 10.1.0.0/16:5432 [p.yaml:3:38]\n"},
		{"localhost", "network: {egress: [\"localhost:6379\"]}", nil, "list\n127.0.0.1:6379 strict localhost:6379 [p.yaml:3:20]\n[::1]:6379 strict localhost:6379 [p.yaml:3:20]\n"},
		{
			"names of the profile and of a rule", "network: {egress: [a.example, {to: b.example, names: strict}, {to: c.example, names: pinned}], names: pinned}", nil,
			"list\na.example:443 pinned a.example [p.yaml:3:20]\nb.example:443 strict b.example [p.yaml:3:36]\nc.example:443 pinned c.example [p.yaml:3:68]\n",
		},
		{"twice", "network: {egress: [a.example, \"A.example:443\"]}", nil, "list\na.example:443 strict a.example [p.yaml:3:20]\n"},
		{"the later word about names", "network: {egress: [a.example, {to: a.example, names: pinned}]}", nil, "list\na.example:443 pinned a.example [p.yaml:3:36]\n"},
		{"any address", "network: {egress: [{to: a.example, addresses: any}, {to: \"*.b.example\", names: pinned, addresses: any}]}", nil, "list\na.example:443 strict any a.example [p.yaml:3:25]\n*.b.example:443 pinned any *.b.example [p.yaml:3:58]\n"},
		{"any address beside public", "network: {egress: [public, {to: a.example, addresses: any}]}", nil, "public\na.example:443 strict any a.example [p.yaml:3:33]\n"},
		{"each word for itself", "network: {egress: [{to: a.example, names: pinned}, {to: a.example, addresses: any}]}", nil, "list\na.example:443 pinned any a.example [p.yaml:3:57]\n"},
		{"a word taken back", "network: {egress: [{to: a.example, addresses: any}, {to: a.example, addresses: ordinary}]}", nil, "list\na.example:443 strict a.example [p.yaml:3:58]\n"},
		{"a flag takes no word back", "network: {egress: [{to: a.example, addresses: any}]}", []string{"a.example"}, "list\na.example:443 strict any a.example [p.yaml:3:25]\n"},
		{"public", "network: {egress: public}", nil, "public\n"},
		{"public and an address", "network: {egress: [\"127.0.0.1:80\", public]}", nil, "public\n127.0.0.1:80 strict 127.0.0.1:80 [p.yaml:3:20]\n"},
		{"public and a flag", "network: {egress: public}", []string{"127.0.0.1:80"}, "public\n127.0.0.1:80 strict 127.0.0.1:80 [--egress]\n"},
		{"a flag", "", []string{"a.example:1-2"}, "list\na.example:1-2 strict a.example:1-2 [--egress]\n"},
		{"all", "network: {egress: [a.example], names: pinned}", []string{"all"}, ""},
		{"none", "network: {egress: none}", nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, err := parse(t, tt.src+"\n").With(profiles.Flags{Egress: tt.flags})
			if err != nil {
				t.Fatal(err)
			}
			plan := mustCompile(t, p, nil).Plan
			if diff := cmp.Diff(tt.want, rulesText(plan.Network)); diff != "" {
				t.Errorf("egress (-want +got):\n%s", diff)
			}
			if got, want := plan.Supervised(), tt.want != ""; got != want {
				t.Errorf("supervised: %v, want %v", got, want)
			}
		})
	}
}

// TestResolverOptions: resolvers are asked for TCP where the supervisor answers, and what a
// profile sets stays.
func TestResolverOptions(t *testing.T) {
	tests := []struct{ src, want string }{
		{"", ""},
		{"network: {egress: all}", ""},
		{"network: {egress: public}", "RES_OPTIONS=use-vc"},
		{"network: {egress: [a.example]}", "RES_OPTIONS=use-vc"},
		{"network: {egress: [a.example]}\nenvironment: {set: {RES_OPTIONS: \"timeout:1 attempts:1\"}}", "RES_OPTIONS=timeout:1 attempts:1 use-vc"},
		{"network: {egress: [a.example]}\nenvironment: {set: {RES_OPTIONS: use-vc}}", "RES_OPTIONS=use-vc"},
		{"environment: {set: {RES_OPTIONS: rotate}}", "RES_OPTIONS=rotate"},
	}
	for _, tt := range tests {
		t.Run(tt.src, func(t *testing.T) {
			got := ""
			for _, e := range mustCompile(t, parse(t, tt.src+"\n"), nil).Plan.Env {
				if strings.HasPrefix(e, "RES_OPTIONS=") {
					got = e
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestRuleOrigin(t *testing.T) {
	for text, want := range map[string]sandbox.Origin{
		"p.yaml:3:20":  {Source: "p.yaml", Line: 3, Column: 20},
		"a:1:b:2:3":    {Source: "a:1:b", Line: 2, Column: 3},
		"--egress":     {Source: "--egress"},
		"p:x:1":        {Source: "p:x:1"},
		"built-in x:1": {Source: "built-in x:1"},
	} {
		if got := profiles.RuleOrigin(&egress.Rule{Origin: text}); got != want {
			t.Errorf("%q is %+v, want %+v", text, got, want)
		}
	}
}

// TestEgressResidual: what each kind of rule leaves open is said, and nothing is said of
// what a plan does not have.
func TestEgressResidual(t *testing.T) {
	const (
		strict, pinned, wildcard = "names: strict checks", "held by the addresses", "any name below these resolves"
		public, names, strangers = "public is every host", "the name servers of this machine", "strangers can publish"
		parent, special          = "a supervisor stays", "holds special addresses"
		cloud, one               = "cloud credentials to whoever asks", "no places on the public Internet"
		anywhere, lets           = "whoever answers for these names can lead them to this machine", "lets whoever answers for"
	)
	all := []string{strict, pinned, wildcard, public, names, strangers, parent, special, cloud, one, anywhere, lets}
	tests := []struct {
		egress string
		want   []string
	}{
		{"none", nil},
		{"all", nil},
		{"public", []string{public, names, parent}},
		{"[a.example]", []string{strict, names, parent}},
		{"[\"a.example:22\"]", []string{pinned, names, parent}},
		{"[\"a.example:22-90\"]", []string{strict, pinned, names, parent}},
		{"[{to: a.example, names: pinned}]", []string{pinned, names, parent}},
		{"[\"*.a.example\"]", []string{strict, wildcard, names, parent}},
		{"[{to: a.example, addresses: any}]", []string{strict, names, parent, anywhere}},
		{"[{to: \"*.a.example\", addresses: any}]", []string{strict, wildcard, names, parent, anywhere, lets}},
		{"[public, {to: a.example, addresses: any}]", []string{public, strict, names, parent, anywhere}},
		{"[\"192.0.2.1:443\"]", []string{parent, one}},
		{"[\"8.8.8.8:443\"]", []string{parent}},
		{"[\"localhost:6379\"]", []string{parent, one}},
		{"[\"169.254.169.254:80\"]", []string{parent, cloud}},
		{"[\"[fd00:ec2::254]:80\", \"10.0.0.7:80\"]", []string{parent, cloud, one}},
		{"[\"10.0.0.0/8:80\"]", []string{parent}},
		{"[\"0.0.0.0/0:443\"]", []string{parent, special}},
		{"[github.com]", []string{strict, names, strangers, parent}},
		{"[gist.github.com]", []string{strict, names, strangers, parent}},
		{"[notgithub.com]", []string{strict, names, parent}},
		{"[\"*.google.com\"]", []string{strict, wildcard, names, strangers, parent}},
		{"[google.com]", []string{strict, names, parent}},
	}
	for _, tt := range tests {
		t.Run(tt.egress, func(t *testing.T) {
			var lines []string
			for _, o := range mustCompile(t, parse(t, "network: {egress: "+tt.egress+"}\n"), nil).Residual {
				lines = append(lines, o.Open)
			}
			text := strings.Join(lines, "\n")
			for _, phrase := range all {
				want := false
				for _, w := range tt.want {
					want = want || w == phrase
				}
				if got := strings.Contains(text, phrase); got != want {
					t.Errorf("%q is said: %v, want %v, in\n%s", phrase, got, want, text)
				}
			}
		})
	}
}
