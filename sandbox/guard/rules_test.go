package guard_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"stockade/sandbox/guard"
)

func toolCall(id, name string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `"}}`
}

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"read_*", "read_file", true},
		{"read_*", "read_", true},
		{"read_*", "Read_file", false},
		{"read_*", "xread_file", false},
		{"a", "a", true},
		{"a", "a\x00", false},
		{"a?", "ab", true},
		{"[ab]*", "b/c", true},
		{"*x", "a/x", true},
		{"a/b", "a\x1fb", false},
		{"[", "[", false},
		{"", "", true},
	} {
		if got := guard.Match(tt.pattern, tt.name); got != tt.want {
			t.Errorf("Match(%q, %q) = %v", tt.pattern, tt.name, got)
		}
	}
}

func TestPolicyCheck(t *testing.T) {
	for name, change := range map[string]func(*guard.Policy){
		"size":     func(p *guard.Policy) { p.MessageSize = 10 },
		"limit":    func(p *guard.Policy) { p.ResultSize = -1 },
		"word":     func(p *guard.Policy) { p.Roots = 7 },
		"unlisted": func(p *guard.Policy) { p.Tools = []string{"a"} },
	} {
		p := open()
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		change(&p)
		if p.Check() == nil {
			t.Errorf("%s is not refused", name)
		}
	}
}

func TestToolsAreListed(t *testing.T) {
	p := everything()
	p.Listed, p.Tools = true, []string{"read_*", "list"}
	const a, b, c, d = `{"name":"read_a" }`, `{ "name":"write","description":"},{"}`, `{"name":"list"}`, `{"name":"rm"}`
	for _, tt := range []struct{ tools, want string }{
		{`[` + a + ` , ` + b + ` , ` + c + `]`, `[` + a + ` , ` + c + `]`},
		{`[ ` + b + ` , ` + a + `,` + d + ` ]`, `[ ` + a + ` ]`},
		{`[` + b + `,` + d + ` , ` + a + `]`, `[` + a + `]`},
		{`[ ` + b + ` ]`, `[  ]`},
		{`[]`, `[]`},
		{`[` + a + `]`, `[` + a + `]`},
		{`[` + b + `,` + a + `,` + d + `,` + c + `,` + b + `]`, `[` + a + `,` + c + `]`},
		{`[{"name":"read_a","Name":"x"},` + c + `]`, `[` + c + `]`},
		{`[{"name":"read_a","description\u0000":"x"},` + c + `]`, `[` + c + `]`},
		{`[{"name":7},3,` + c + `]`, `[` + c + `]`},
		{`[` + a + `,` + c + `,` + a + `]`, `[` + c + `]`},
		{`[{"n\u0061me":"read_\u0061"},` + a + `,` + c + `]`, `[` + c + `]`},
	} {
		w := newWorld(t, p)
		w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		w.server.say(`{"jsonrpc":"2.0","id":1,"result":{"x":1.0,"tools":` + tt.tools + `,"nextCursor":"\u0061","ttlMs":5}}`)
		w.host.hears(`{"jsonrpc":"2.0","id":1,"result":{"x":1.0,"tools":` + tt.want + `,"nextCursor":"\u0061","ttlMs":5}}`)
	}
	for _, result := range []string{`{}`, `{"tools":{}}`, `{"Tools":[],"tools":[]}`, `[]`, `null`} {
		w := newWorld(t, p)
		w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		w.server.say(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)
		w.host.hearsOf(`"id":1,"error":{"code":-31000`)
	}
}

func TestToolsAreCalled(t *testing.T) {
	p := open()
	p.Listed, p.Tools = true, []string{"read_*"}
	w := newWorld(t, p)
	w.passes(t, w.host, toolCall("1", "read_x"))
	for id, name := range map[string]string{"2": "write", `"3"`: "READ_x", "4": `read\u0000`, "5": "", "6": strings.Repeat("n", 1000)} {
		w.host.say(toolCall(id, name))
		w.host.hearsOf(`"id":`+id+`,"error":{"code":-32602,"message":"Unknown tool: `, `"}}`)
	}
	for _, params := range []string{`,"params":{}`, `,"params":["read_x"]`, ``, `,"params":{"name":["read_x"]}`} {
		w.host.say(`{"jsonrpc":"2.0","id":9,"method":"tools/call"` + params + `}`)
		w.host.hearsOf(`"id":9,"error":{"code":-32602`)
	}
	w.host.say(`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"write"}}`)
	w.silence(t)

	p.Tools = nil // an empty list admits none
	none := newWorld(t, p)
	none.host.say(toolCall("1", "read_x"))
	none.host.hearsOf("Unknown tool: read_x")
}

func TestCallLimits(t *testing.T) {
	p := open()
	p.ConcurrentCalls, p.CallsPerMinute = 2, 4
	w := newWorld(t, p)
	w.passes(t, w.host, toolCall("1", "x"))
	w.passes(t, w.host, toolCall("2", "x"))
	w.host.say(toolCall("3", "x"))
	w.host.hearsOf(`"id":3,"error":{"code":-31000`, `"reason":"concurrent-calls"`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.passes(t, w.host, toolCall("3", "x"))
	// A cancelled call does not count any more; its late answer passes.
	w.passes(t, w.host, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	w.passes(t, w.host, toolCall("4", "x"))
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":2,"result":{"late":true}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{}}}`)
	// What goes on with a call that the server asked back about is the same call; without such
	// a question it is another one.
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x","inputResponses":{}}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":5,"result":{}}`)
	w.host.say(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","inputResponses":{}}}`)
	w.host.hearsOf(`"id":6,"error":{"code":-31000`, `"reason":"calls-per-minute"`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`)
}

func TestCallTimeout(t *testing.T) {
	p := open()
	p.CallTimeout, p.ConcurrentCalls = 50*time.Millisecond, 1
	w := newWorld(t, p)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":0,"method":"subscriptions/listen"}`)
	w.passes(t, w.host, toolCall(`"\u0061"`, "slow"))
	w.host.hearsOf(`"id":"\u0061","error":{"code":-31000`, `"reason":"call-timeout"`)
	w.server.hearsOf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0061","reason":"`)
	w.host.say(toolCall(`"a"`, "slow")) // its answer could be the late one
	w.host.hearsOf(`"id":null,"error"`)
	w.server.say(`{"jsonrpc":"2.0","id":"a","result":{}}`)
	w.silence(t)
	w.passes(t, w.host, toolCall(`"a"`, "quick"))
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":"a","result":{}}`)
	time.Sleep(2 * p.CallTimeout)
	w.silence(t)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":0,"result":{}}`)
}

func TestResultSize(t *testing.T) {
	p := open()
	p.ResultSize = 1 << 10
	w := newWorld(t, p)
	big := `{"content":"` + strings.Repeat("x", 1<<10) + `"}`
	w.passes(t, w.host, toolCall("1", "x"))
	w.server.say(`{"result":` + big + `, "jsonrpc":"2.0","id":1,"x":0}`)
	w.host.hears(`{"result":{"content":[{"type":"text","text":"stockade: the result has 1038 bytes, and result-size allows 1024"}],"isError":true}, "jsonrpc":"2.0","id":1,"x":0}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`)
	w.server.say(`{"jsonrpc":"2.0","id":2,"result":` + big + `}`)
	w.host.hearsOf(`"isError":true,"resultType":"complete"}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"t"}}`)
	w.server.say(`{"jsonrpc":"2.0","id":3,"result":` + big + `}`)
	w.host.hearsOf(`"isError":true}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"x:y"}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":4,"result":`+big+`}`)
}

func TestServerRequests(t *testing.T) {
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list"} {
		w := newWorld(t, open())
		w.server.say(`{"jsonrpc":"2.0","id":"\u0061","method":"` + method + `","params":{"task":{}}}`)
		w.server.hearsOf(`{"jsonrpc":"2.0","id":"\u0061","error":{"code":-32601,`)
		w.silence(t)
		// Answers that nobody asked for do not reach the server.
		w.host.say(`{"jsonrpc":"2.0","id":"a","result":{"roots":[{"uri":"file:///secret"}]}}`)
		w.silence(t)
		w.noted(t, "an answer of the host's")

		allowed := newWorld(t, everything())
		allowed.passes(t, allowed.server, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`)
		allowed.server.say(`{"jsonrpc":"2.0","id":1.0,"method":"ping"}`)
		allowed.silence(t)
		allowed.noted(t, "in use already")
		allowed.passes(t, allowed.host, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		allowed.host.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
		allowed.silence(t)
	}
	w := newWorld(t, open())
	for _, method := range []string{"Sampling/createMessage", `roots/list\u0000`, `elicitation\u200b/create`} {
		w.server.say(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`)
		w.server.hearsOf(`"id":1,"error":{"code":-32601`)
	}
	w.server.say(`{"jsonrpc":"2.0","method":"sampling/createMessage"}`)
	w.server.say(`{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{"requestId":1}}`)
	w.server.hearsOf(`"id":1,"error":{"code":-32600`)
	w.silence(t)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"result":{}}`)
}

func TestCapabilities(t *testing.T) {
	for _, tt := range []struct{ declared, shown string }{
		{`{"roots":{"listChanged":true},"sampling":{},"elicitation":{}}`, `{}`},
		{`{ "experimental":{} , "sampling":{} , "tasks":{"roots":1} }`, `{ "experimental":{} , "tasks":{"roots":1} }`},
		{`{"ro\u006fts":null,"a":1}`, `{"a":1}`},
		{`{"a":1,"sampling":{}}`, `{"a":1}`},
		{`{}`, `{}`},
	} {
		w := newWorld(t, open())
		w.host.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":` + tt.declared + `,"protocolVersion":"2025-11-25"}}`)
		w.server.hears(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":` + tt.shown + `,"protocolVersion":"2025-11-25"}}`)
		const before, after = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/clientCapabilities":`, `,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
		w.host.say(before + tt.declared + after)
		w.server.hears(before + tt.shown + after)
		w.host.say(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		w.silence(t)
		kept := newWorld(t, everything())
		kept.passes(t, kept.host, before+tt.declared+after)
	}
	w := newWorld(t, open())
	w.host.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"Roots":{}}}}`)
	w.host.hearsOf(`"id":0,"error":{"code":-32602`, "looks like")
}

// A server of 2026-07-28 asks in its answer.
func TestInputRequired(t *testing.T) {
	for _, method := range []string{"sampling/createMessage", "elicitation/create", "roots/list", "Roots/List"} {
		question := `{"q":{"method":"` + method + `","params":{}},"r":{}}`
		for _, result := range []string{
			`{"resultType":"input_required","inputRequests":` + question + `,"requestState":"s"}`,
			`{"resultType":"complete","inputRequests":` + question + `}`,
			`{"task":{"status":"input_required","inputRequests":` + question + `}}`,
		} {
			for _, asked := range []string{"tools/call", "prompts/get", "resources/read", "tasks/get"} {
				w := newWorld(t, open())
				w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"`+asked+`","params":{"name":"x"}}`)
				w.server.say(`{"jsonrpc":"2.0","id":1,"result":` + result + `}`)
				w.host.hearsOf(`"id":1,"error":{"code":-31000`)
				w.silence(t)
			}
		}
	}
}

func TestIDs(t *testing.T) {
	w := newWorld(t, open())
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"a"}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":"1","method":"a"}`)
	for _, again := range []string{"1", "1.0", "10e-1", `"\u0031"`} {
		w.host.say(`{"jsonrpc":"2.0","id":` + again + `,"method":"a"}`)
		w.host.hearsOf(`"id":null,"error":{"code":-32600`)
	}
	for _, foreign := range []string{"2", `"2"`, `"init"`} {
		w.server.say(`{"jsonrpc":"2.0","id":` + foreign + `,"result":{}}`)
	}
	w.server.say(`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`)
	w.silence(t)
	w.noted(t, `with the id "2"`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":"1","result":{}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":1.0,"result":{}}`)
	w.server.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.silence(t)
}

func TestManyInFlight(t *testing.T) {
	w := newWorld(t, open())
	for i := range guard.MaxInFlight {
		w.passes(t, w.host, `{"jsonrpc":"2.0","id":`+strconv.Itoa(i)+`,"method":"a"}`)
	}
	w.host.say(`{"jsonrpc":"2.0","id":-1,"method":"a"}`)
	w.host.hearsOf(`"id":-1,"error":{"code":-31000`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":7,"result":{}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":-1,"method":"a"}`)
}
