package hostconfig_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// dice write files of one format with everything that its grammar lets vary.
type dice struct {
	*rand.Rand
	end string // how lines end
}

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

func (d dice) maybe(s string) string { return d.one("", s) }

// shuffled joins parts in any order.
func (d dice) shuffled(separator string, parts ...string) string {
	d.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	return strings.Join(parts, separator)
}

// words are texts that are hard to move about.
var words = []string{"npx", "-y", "--", "a b", `C:\x\y.exe`, "it's", `"q"`, "ü—命", "${input:x}", "{env:X}", "#no", "// no", "null", "1e3", "a: b", "[x]", "*x", "&x", "!x", "%x", "@s/p", "", "-", "x,y", "}"}

func (d dice) word() string { return words[d.IntN(len(words))] }

// program is a command that no host would take for a whole line.
func (d dice) program() string {
	return d.one("npx", "/opt/a b/c", `C:\Program Files\x`, "it's/x", "ü", "${X:-y}", `q"q`, "./x", "~/x #1", "@x/y", "stockade")
}

func (d dice) blank() string {
	return d.one("", "", " ", "  ", "\t", d.end, d.end+"\t  ", d.end+d.end+"    ", "/* c, [ */", " // \"c\""+d.end, "/**/"+d.end+"  ")
}

func (d dice) jsonText(s string) string {
	var out strings.Builder
	for _, r := range s {
		if r < 0x10000 && d.IntN(6) == 0 {
			fmt.Fprintf(&out, `\u%04X`, r)
			continue
		}
		text, err := json.Marshal(string(r))
		if err != nil {
			panic(err)
		}
		out.Write(text[1 : len(text)-1])
	}
	return `"` + out.String() + `"`
}

func (d dice) jsonTable(members ...string) string {
	for i, m := range members {
		members[i] = d.blank() + m + d.blank()
	}
	if len(members) == 0 {
		return "{" + d.blank() + "}"
	}
	return "{" + d.shuffled(",", members...) + d.maybe(","+d.blank()) + "}"
}

func (d dice) jsonList(items int) string {
	if items == 0 {
		return "[" + d.blank() + "]"
	}
	var out []string
	for range items {
		out = append(out, d.blank()+d.jsonText(d.word())+d.blank())
	}
	return "[" + strings.Join(out, ",") + d.maybe(","+d.blank()) + "]"
}

func (d dice) member(key, value string) string {
	return d.jsonText(key) + d.blank() + ":" + d.blank() + value
}

func (d dice) json() (file string, commands int) {
	servers := []string{d.member("remote", d.jsonTable(d.member("url", `"x"`))), d.member("off", d.jsonTable())}
	for i := range d.IntN(4) {
		members := []string{d.member("command", d.jsonText(d.program()))}
		if d.IntN(3) > 0 {
			members = append(members, d.member("args", d.jsonList(d.IntN(4))))
		}
		if d.IntN(2) > 0 {
			members = append(members, d.member("env", d.jsonTable(d.member("K", d.jsonText(d.word())), d.member("L", d.jsonText(d.word())), d.member("args", d.jsonList(2)))), d.member("type", `"stdio"`))
		}
		servers = append(servers, d.member(fmt.Sprintf("s%d é", i), d.jsonTable(members...)))
		commands++
	}
	root := d.jsonTable(d.member("x", d.jsonList(2)), d.member("mcpServers", d.jsonTable(servers...)))
	return d.maybe("\xef\xbb\xbf") + d.blank() + root + d.blank(), commands
}

func (d dice) tomlText(s string) string {
	basic := tomlQuoted(s)
	switch d.IntN(4) {
	case 0:
		if !strings.Contains(s, "'") {
			return "'" + s + "'"
		}
	case 1:
		if !strings.Contains(s, "'") {
			return "'''" + d.maybe(d.end) + s + "'''"
		}
	case 2:
		return `""` + basic[:1] + d.maybe("\\"+d.end+"  ") + basic[1:] + `""`
	}
	return basic
}

func tomlQuoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func (d dice) tomlBlank() string {
	return d.one("", " ", "\t", d.end, d.end+"  ", " # c ]"+d.end)
}

func (d dice) tomlList(items int) string {
	if items == 0 {
		return "[" + d.tomlBlank() + "]"
	}
	var out []string
	for range items {
		out = append(out, d.tomlBlank()+d.tomlText(d.word())+d.tomlBlank())
	}
	return "[" + strings.Join(out, ",") + d.maybe(","+d.tomlBlank()) + "]"
}

func (d dice) toml() (file string, commands int) {
	var top, out strings.Builder
	for i := range 1 + d.IntN(4) {
		equals := d.one("=", " = ", "\t=")
		name := d.one(fmt.Sprintf("s%d", i), fmt.Sprintf(`"s %d.x"`, i), fmt.Sprintf("'é%d'", i))
		members := []string{"command" + equals + d.tomlText(d.program())}
		if d.IntN(3) > 0 {
			members = append(members, "args"+equals+d.tomlList(d.IntN(4)))
		}
		members = append(members, "enabled"+equals+"true")
		after := d.maybe(" # c") + d.end
		switch d.IntN(3) {
		case 0:
			fmt.Fprintf(&out, "[ mcp_servers . %s ]%s%s%s", name, after, d.shuffled(after+d.maybe(d.end)+d.maybe("\t"), members...), after)
			out.WriteString(d.maybe("[mcp_servers." + name + ".env]" + d.end + "command = " + d.tomlText(d.word()) + after))
		case 1:
			for i, m := range members {
				members[i] = "mcp_servers." + name + d.one(".", " . ") + m
			}
			top.WriteString(d.maybe("  ") + d.shuffled(after, members...) + after)
		default:
			fmt.Fprintf(&top, "mcp_servers.%s = {%s}%s", name, d.maybe(" ")+d.shuffled(d.one(",", ", "), members...)+d.maybe(" "), after)
		}
		commands++
	}
	// A table that dotted keys have opened cannot be opened by a header again.
	if top.Len() > 0 && out.Len() > 0 {
		return d.toml()
	}
	return d.maybe("\xef\xbb\xbf") + d.maybe("# c"+d.end) + top.String() + out.String() + d.maybe("[x]"), commands
}

func (d dice) yamlText(s string) string {
	switch d.IntN(3) {
	case 0:
		return "'" + strings.ReplaceAll(s, "'", "''") + "'"
	case 1:
		if strings.Trim(s, "abcdefghijklmnopqrstuvwxyz/.") == "" && s != "" && s != "null" {
			return s
		}
	}
	return d.jsonText(s)
}

func (d dice) yamlList(items int, indent string) string {
	after := d.maybe(" # c ]")
	if items == 0 {
		return " [" + d.maybe(" ") + "]" + after
	}
	var out []string
	if d.IntN(2) > 0 {
		for range items {
			out = append(out, d.one("", " ", d.end+indent+"  ", " # c"+d.end+indent+"   ")+d.yamlText(d.word())+d.maybe(" "))
		}
		return " [" + strings.Join(out, ",") + d.maybe(",") + d.one("", " ", d.end+indent+" ") + "]" + after
	}
	inner := indent + d.one("", "  ", "   ")
	dash := "-" + d.one(" ", "   ")
	for range items {
		out = append(out, d.maybe(d.end)+d.maybe(d.end+inner+"# c")+d.end+inner+dash+d.yamlText(d.word())+d.maybe("  # c"))
	}
	return after + strings.Join(out, "")
}

func (d dice) yaml() (file string, commands int) {
	indent := d.one("  ", " ", "    ")
	out := d.maybe("\xef\xbb\xbf") + d.maybe("---"+d.end) + d.maybe("x: &x [y]"+d.end+"z: *x"+d.end) + "extensions:" + d.maybe(" # c") + d.end
	for i := range 1 + d.IntN(4) {
		inner := indent + d.one("  ", " ", "    ")
		members := []string{"cmd:" + d.one(" ", "   ") + d.yamlText(d.program()) + d.maybe("  # c"), "type: stdio"}
		if d.IntN(3) > 0 {
			members = append(members, "args:"+d.yamlList(d.IntN(4), inner))
		}
		out += fmt.Sprintf("%ss%d:%s%s%s%s", indent, i, d.end, inner, d.shuffled(d.end+d.maybe(d.end)+inner, members...), d.end)
		out += d.maybe(inner + "envs: {K: " + d.yamlText(d.word()) + ", 'L' : " + d.yamlText(d.word()) + "} # c" + d.end)
		commands++
	}
	return out + d.maybe("y: z"), commands
}

// TestGenerated wraps files of every layout that the dice know. Beside the promises that
// hold for any text, every entry in them can be wrapped.
func TestGenerated(t *testing.T) {
	const seed, files = 7, 1000
	tests := []struct {
		name, file string
		write      func(dice) (string, int)
		decode     decoder
	}{
		{"JSON", ".mcp.json", dice.json, decodeJSON},
		{"TOML", ".codex/config.toml", dice.toml, decodeTOML},
		{"YAML", "goose/config.yaml", dice.yaml, decodeYAML},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, seed))
			for range files {
				d := dice{rng, "\n"}
				d.end = d.one("\n", "\r\n")
				src, want := tt.write(d)
				if _, err := tt.decode([]byte(src)); err != nil {
					t.Fatalf("the dice wrote\n%q: %v", src, err)
				}
				if got := check(t, []byte(src), place(t, tt.file), tt.decode); got != want {
					t.Fatalf("%d of %d entries were wrapped in\n%s", got, want, src)
				}
			}
		})
	}
}
