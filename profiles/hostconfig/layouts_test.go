package hostconfig_test

import "testing"

func codex(text string) string { return "[mcp_servers.a]\n" + text }

var tomlLayouts = []layout{
	{"words in one line", ".codex/config.toml", codex("command = \"npx\"\nargs = [\"-y\", 'x']\n"), codex("command = \"stockade\"\nargs = [\"run\", \"--\", \"npx\", \"-y\", 'x']\n")},
	{"words in lines", ".codex/config.toml", codex("command = 'npx' # why\nargs = [ # one\n    \"-y\", # two\n    'x',\n]"), codex("command = \"stockade\" # why\nargs = [ # one\n    \"run\",\n    \"--\",\n    'npx',\n    \"-y\", # two\n    'x',\n]")},
	{"words first, CRLF and a mark", ".codex/config.toml", "\xef\xbb\xbf[mcp_servers.a]\r\nargs = []\r\ncommand = \"x\"\r\n", "\xef\xbb\xbf[mcp_servers.a]\r\nargs = [\"run\", \"--\", \"x\"]\r\ncommand = \"stockade\"\r\n"},
	{"no list", ".codex/config.toml", codex("  command = 'C:\\x' # c\n  enabled = true\n"), codex("  command = \"stockade\"\n  args = [ \"run\", \"--\", 'C:\\x'] # c\n  enabled = true\n")},
	{"no list, no last line end", ".codex/config.toml", codex("command = 'x'"), codex("command = \"stockade\"\nargs = [ \"run\", \"--\", 'x']")},
	{"no list, CRLF", ".codex/config.toml", "[mcp_servers.a]\r\ncommand = 'x'\r\n", "[mcp_servers.a]\r\ncommand = \"stockade\"\r\nargs = [ \"run\", \"--\", 'x']\r\n"},
	{"empty list over lines", ".codex/config.toml", codex("command = 'x'\nargs = [\n  # none\n]\n"), codex("command = \"stockade\"\nargs = [\"run\", \"--\", 'x'\n  # none\n]\n")},
	{"text over lines", ".codex/config.toml", codex("command = \"\"\"\\\n  x\"\"\"\nargs = ['''\ny''']\n"), codex("command = \"stockade\"\nargs = [\"run\", \"--\", \"\"\"\\\n  x\"\"\", '''\ny''']\n")},
	{"inline table", ".codex/config.toml", "[mcp_servers]\na = { command = \"x\", args = [\"y\"] }\n", "[mcp_servers]\na = { command = \"stockade\", args = [\"run\", \"--\", \"x\", \"y\"] }\n"},
	{"inline table, no list", ".codex/config.toml", "mcp_servers = { a = { command = \"x\" } }", "mcp_servers = { a = { command = \"stockade\", args = [ \"run\", \"--\", \"x\"] } }"},
	{"dotted keys", ".codex/config.toml", "mcp_servers.a.command = 'x'\nmcp_servers.\"b c\".command = 'y'\nmcp_servers.a.env.K = 'v'\n", "mcp_servers.a.command = \"stockade\"\nmcp_servers.a.args = [ \"run\", \"--\", 'x']\nmcp_servers.\"b c\".command = \"stockade\"\nmcp_servers.\"b c\".args = [ \"run\", \"--\", 'y']\nmcp_servers.a.env.K = 'v'\n"},
	{"dotted keys in an inline table", ".codex/config.toml", "mcp_servers = { a.command = 'x', a.cwd = '/' }\n", "mcp_servers = { a.command = \"stockade\", a.args = [ \"run\", \"--\", 'x'], a.cwd = '/' }\n"},
	{"list of tables", ".vibe/config.toml", "[[mcp_servers]]\nname = 'a'\ncommand = 'x'\n[mcp_servers.env]\nK = 'v'\n[[mcp_servers]]\nname = 'b'\nargs = ['z']\ncommand = 'y'\n", "[[mcp_servers]]\nname = 'a'\ncommand = \"stockade\"\nargs = [ \"run\", \"--\", 'x']\n[mcp_servers.env]\nK = 'v'\n[[mcp_servers]]\nname = 'b'\nargs = [\"run\", \"--\", 'y', 'z']\ncommand = \"stockade\"\n"},
	{"only comments", ".codex/config.toml", "# [mcp_servers.a]\n# command = 'x'\n", "# [mcp_servers.a]\n# command = 'x'\n"},
	{"remote", ".codex/config.toml", codex("url = 'https://mcp.example.com'\n"), codex("url = 'https://mcp.example.com'\n")},
}

func goose(text string) string { return "extensions:\n  a:\n    type: stdio\n" + text }

var yamlLayouts = []layout{
	{"dashes", "goose/config.yaml", goose("    cmd: npx\n    args:\n    - -y\n    - \"@a/b\"\n"), goose("    cmd: stockade\n    args:\n    - run\n    - \"--\"\n    - npx\n    - -y\n    - \"@a/b\"\n")},
	{"indented dashes, words first", "goose/config.yaml", goose("    args:\n      # why\n      -  y # what\n    cmd: 'x'\n"), goose("    args:\n      # why\n      - run\n      - \"--\"\n      - 'x'\n      -  y # what\n    cmd: stockade\n")},
	{"dashes, CRLF", "goose/config.yaml", "extensions:\r\n  a:\r\n    args:\r\n    - y\r\n    cmd: x\r\n", "extensions:\r\n  a:\r\n    args:\r\n    - run\r\n    - \"--\"\r\n    - x\r\n    - y\r\n    cmd: stockade\r\n"},
	{"brackets", "goose/config.yaml", goose("    cmd: \"x\\u0041\"\n    args: [ y, 'z' ]\n"), goose("    cmd: stockade\n    args: [ run, \"--\", \"x\\u0041\", y, 'z' ]\n")},
	{"brackets over lines", "goose/config.yaml", goose("    cmd: x\n    args: [\n      y, # why\n      'it''s',\n    ]\n"), goose("    cmd: stockade\n    args: [\n      run,\n      \"--\",\n      x,\n      y, # why\n      'it''s',\n    ]\n")},
	{"text over lines in brackets", "goose/config.yaml", goose("    cmd: x\n    args: [\"y\n      z\", 'w\n      w']\n"), goose("    cmd: stockade\n    args: [run, \"--\", x, \"y\n      z\", 'w\n      w']\n")},
	{"empty list", "goose/config.yaml", goose("    cmd: x\n    args: []\n"), goose("    cmd: stockade\n    args: [run, \"--\", x]\n")},
	{"empty list with a comment", "goose/config.yaml", goose("    cmd: x\n    args: [ # none\n      ]\n"), goose("    cmd: stockade\n    args: [run, \"--\", x # none\n      ]\n")},
	{"no list", "goose/config.yaml", goose("    cmd: x # why\n    timeout: 3"), goose("    cmd: stockade\n    args: [ run, \"--\", x] # why\n    timeout: 3")},
	{"no list, no last line end", "goose/config.yaml", goose("    cmd: x"), goose("    cmd: stockade\n    args: [ run, \"--\", x]")},
	{"flow table", "goose/config.yaml", "extensions: {a: {cmd: x, args: [y]}, b: {cmd: z}}\n", "extensions: {a: {cmd: stockade, args: [run, \"--\", x, y]}, b: {cmd: stockade, args: [ run, \"--\", z]}}\n"},
	{"list of tables", ".continue/config.yaml", "mcpServers:\n  - name: a\n    command: x\n  - command: \"C:\\\\y\"\n    name: b\n    args:\n      - \"z\"", "mcpServers:\n  - name: a\n    command: stockade\n    args: [ run, \"--\", x]\n  - command: stockade\n    name: b\n    args:\n      - run\n      - \"--\"\n      - \"C:\\\\y\"\n      - \"z\""},
	{"list of tables, command first", ".continue/config.yaml", "mcpServers:\n- command: x\n  name: a\n", "mcpServers:\n- command: stockade\n  args: [ run, \"--\", x]\n  name: a\n"},
	{"anchors elsewhere", "goose/config.yaml", "x: &x {y: 1}\nz: *x\nextensions:\n  ü: {cmd: ü, args: [ü]}\n", "x: &x {y: 1}\nz: *x\nextensions:\n  ü: {cmd: stockade, args: [run, \"--\", ü, ü]}\n"},
	{"block text behind", "goose/config.yaml", goose("    cmd: x\n    args:\n    - |\n      y\n      z\n    - w\n"), goose("    cmd: stockade\n    args:\n    - run\n    - \"--\"\n    - x\n    - |\n      y\n      z\n    - w\n")},
	{"built-in and remote", "goose/config.yaml", "extensions:\n  a: {type: builtin}\n  b: {type: sse, uri: 'https://mcp.example.com'}\n", "extensions:\n  a: {type: builtin}\n  b: {type: sse, uri: 'https://mcp.example.com'}\n"},
	{"nothing", "goose/config.yaml", "", ""},
	{"no extensions", "goose/config.yaml", "GOOSE_MODE: auto\n", "GOOSE_MODE: auto\n"},
}

func TestLayoutsTOML(t *testing.T) { testLayouts(t, tomlLayouts) }

func TestLayoutsYAML(t *testing.T) { testLayouts(t, yamlLayouts) }
