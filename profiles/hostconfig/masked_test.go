package hostconfig_test

import (
	"strings"
	"testing"

	"stockade/profiles/hostconfig"
)

func TestMasked(t *testing.T) {
	masking := hostconfig.Masking{
		Variable: "V",
		Text: func(key, text string) string {
			if key == "apiKey" {
				return "T"
			}
			return text
		},
		Words: func(words []string) []string {
			out := append([]string{}, words...)
			for i := range out {
				if out[i] == "hide" {
					out[i] = "W"
				}
			}
			return out
		},
	}
	tests := []struct{ name, file, src, want string }{
		{
			"JSON", ".mcp.json",
			`{"apiKey":"k","n":1,"mcpServers":{"a":{"command":"hide","args":["hide","1","x"],"env":{"A":"1","B":2,"C":"","D":"1"}},"b":{"url":"u","headers":{"H":"h"},"x":{"y":["z"]}}}}`,
			`{"apiKey":"T","n":1,"mcpServers":{"a":{"command":"hide","args":["W","1","x"],"env":{"A":"V","B":"V","C":"","D":"V"}},"b":{"url":"u","headers":{"H":"V"},"x":{"y":["V"]}}}}`,
		},
		{"a key twice", ".mcp.json", `{"mcpServers":{"a":{"command":"x","env":{"A":"s"},"env":{"A":"t","A":"u"}}}}`, `{"mcpServers":{"a":{"command":"x","env":{"A":"V"},"env":{"A":"V","A":"V"}}}}`},
		{"nested", ".zed/settings.json", `{"context_servers":{"a":{"command":{"path":"x","args":["hide"],"env":{"A":"s"}}}}}`, `{"context_servers":{"a":{"command":{"path":"x","args":["W"],"env":{"A":"V"}}}}}`},
		{"TOML", ".codex/config.toml", codex("command = 'x'\nargs = ['hide']\nenv = { A = 's', B = \"\"\"\nt\"\"\" }"), codex("command = 'x'\nargs = [\"W\"]\nenv = { A = \"V\", B = \"V\" }")},
		{"YAML", "goose/config.yaml", "extensions:\n  a:\n    cmd: x\n    args:\n    - hide\n    envs: {A: s}\n", "extensions:\n  a:\n    cmd: x\n    args:\n    - \"W\"\n    envs: {A: \"V\"}\n"},
		{"a block in YAML", "goose/config.yaml", "extensions:\n  a:\n    cmd: x\n    envs:\n      A: |\n        s\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, whole := parse(t, tt.file, tt.src).Masked(masking)
			if string(got) != tt.want || whole != (tt.want != "") {
				t.Errorf("%v\ngot  %s\nwant %s", whole, got, tt.want)
			}
		})
	}
}

func TestWordPlace(t *testing.T) {
	f := parse(t, ".mcp.json", strings.ReplaceAll(entry(`"command": "x", "args": [|"y",|"z"]`), "|", "\n"))
	for at, want := range []int{1, 2, 3, 0} {
		if line, _ := f.WordPlace(f.Servers[0].Ref, at); line != want {
			t.Errorf("word %d: line %d, want %d", at, line, want)
		}
	}
}
