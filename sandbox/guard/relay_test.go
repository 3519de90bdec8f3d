package guard_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

func TestPassesUnchanged(t *testing.T) {
	w := newWorld(t, everything())
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t, everything())
			w.agreed(t, version)
			w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			w.passes(t, w.server, ` { "result" : {"tools":[ {"name":"a\u0062", "description":"\ud83d\ude00 \u200d \u0000"} , {"name":"c"} ],"nextCursor":""}, "id":1 ,"jsonrpc":"2.0"}`+"\t\r")
			w.passes(t, w.server, `{"jsonrpc":"2.0","id":1,"method":"roots/list"}`)
			w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
			w.passes(t, w.host, `{"jsonrpc":"2.0","id":9007199254740993,"method":"tools/call","params":{"name":"c","arguments":{"NAME":1e400,"name\u0000":false,"x":1.0}}}`)
			w.passes(t, w.server, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1.50}}`)
			w.passes(t, w.server, `{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32000,"message":"no"},"extra":[]}`)
			w.passes(t, w.host, `{"jsonrpc":"2.0","id":"\u0041","method":"made/up","params":[1,2]}`)
			w.passes(t, w.server, `{"jsonrpc":"2.0","id":"A","result":null}`)
			w.noNotes(t)
		})
	}
	// The revision without initialize.
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{`+meta+`}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":0,"error":{"code":-32601,"message":"Method not found"}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{`+meta+`}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x",`+meta+`}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","requestState":"\u0061\/é==","inputRequests":{"q":{"method":"elicitation/create","params":{}}}}}`)
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","requestState":"\u0061\/é==","inputResponses":{"q":{"action":"accept"}},`+meta+`}}`)
	w.passes(t, w.server, `{"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[]}}`)
	w.noNotes(t)
}

// Lines of all sizes pass (a line reader of 64 KiB once ended sessions), also where they come
// in pieces or lack their newline.
func TestSizes(t *testing.T) {
	w := newWorld(t, everything())
	for _, size := range []int{64<<10 - 1, 64 << 10, 64<<10 + 1, 1 << 20, 20 << 20} {
		begin, end := `{"jsonrpc":"2.0","method":"m","params":{"text":"`, `"}}`
		line := begin + strings.Repeat("x", size-len(begin)-len(end)) + end
		go w.server.say(line)
		if got := w.host.line(); got != line {
			t.Fatalf("%d bytes: got %d others", size, len(got))
		}
	}
	for _, c := range []byte(`{"jsonrpc":"2.0","method":"slow"}`) {
		w.server.raw(string(c))
		time.Sleep(100 * time.Microsecond)
	}
	w.server.raw("\r\n{\"jsonrpc\":\"2.0\",\"method\":\"last\"}")
	w.server.in.Close()
	w.host.hears(`{"jsonrpc":"2.0","method":"slow"}` + "\r")
	rest, err := io.ReadAll(w.host.read)
	if string(rest) != `{"jsonrpc":"2.0","method":"last"}` || err != nil {
		t.Errorf("got %q, %v", rest, err)
	}
	<-w.relay.Drained()
}

func TestTooLarge(t *testing.T) {
	p := everything()
	p.MessageSize = 64 << 10
	w := newWorld(t, p)
	big := strings.Repeat(`{\"id\":3,`, 1<<20)
	for _, tt := range []struct{ line, answer string }{
		{`{"jsonrpc":"2.0","id":"before","method":"tools/call","params":{"name":"` + big + `","id":7}}`, `"id":"before","error":{"code":-31000,`},
		{`{"method":"tools/call","params":{"name":"` + big + `","id":7},"jsonrpc":"2.0","id":5}`, `"id":5,"error":{"code":-31000,`},
		{`{"method":"tools/call","params":{"name":"` + big + `"},"id":1,"jsonrpc":"2.0","id":5}`, `"id":null,"error":{"code":-32600,`},
		{`{"method":"` + big, `"id":null,"error":{`},
	} {
		w.host.say(tt.line)
		w.host.hearsOf(tt.answer, "larger than 65536 bytes")
	}
	w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`)
	w.server.say(`{"result":{"content":[{"type":"text","text":"` + big + `"}]},"jsonrpc":"2.0","id":1}`)
	w.host.hearsOf(`"id":1,"error":{"code":-31000,`, `"reason":"message-size"`)
	w.noted(t, "message-size allows 65536")
	w.server.say(`{"jsonrpc":"2.0","id":2,"method":"ping","params":{"x":"` + big + `"}}`)
	w.server.hearsOf(`"id":2,"error":{"code":-31000,`)
	// At the limit it passes, one byte more does not.
	exact := `{"jsonrpc":"2.0","method":"m","params":"`
	exact += strings.Repeat("y", p.MessageSize-len(exact)-2) + `"}`
	w.passes(t, w.server, exact)
	w.server.say(exact[:len(exact)-2] + `y"}`)
	w.silence(t)
}

// What is no message goes to the person, and the session goes on.
func TestNoise(t *testing.T) {
	w := newWorld(t, open())
	for _, noise := range []string{
		"Server listening \x1b[31mon stdio", "", "[INFO] x", `{"level":"info"}`, `"text"`, "\xff\xfe{}", "null", "\ufeff{\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
		`{"jsonrpc":"1.0","id":1,"result":{}}`,
	} {
		w.server.say(noise)
	}
	w.silence(t)
	w.noted(t, `server wrote no message: "Server listening \x1b[31mon stdio"`)
	for range 1000 {
		w.server.say("flood")
	}
	w.silence(t)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.notes) > 40 {
		t.Errorf("%d notes of a flood", len(w.notes))
	}
}

// smuggled are messages that two readers could understand differently.
var smuggled = map[string]string{
	"key twice":            `{"jsonrpc":"2.0","id":%s,"method":"a","method":"tools/call"}`,
	"escaped twin":         `{"jsonrpc":"2.0","id":%s,"method":"a","m\u0065thod":"tools/call"}`,
	"key twice below":      `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"a","arguments":{"p":1,"p":2}}}`,
	"letter case":          `{"jsonrpc":"2.0","id":%s,"method":"a","Method":"tools/call"}`,
	"long s":               `{"jsonrpc":"2.0","id":%s,"method":"a","param\u017f":{}}`,
	"NUL behind":           `{"jsonrpc":"2.0","id":%s,"method":"a","method\u0000":"tools/call"}`,
	"zero width":           `{"jsonrpc":"2.0","id":%s,"method":"a","me\u200bthod":"tools/call"}`,
	"method in other case": `{"jsonrpc":"2.0","id":%s,"method":"Tools/Call","params":{"name":"x"}}`,
	"method with NUL":      `{"jsonrpc":"2.0","id":%s,"method":"tools/call\u0000","params":{"name":"x"}}`,
	"name in other case":   `{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"x","Name":"y"}}`,
	"no UTF-8":             `{"jsonrpc":"2.0","id":%s,"method":"a","params":{"x":"` + "\xff" + `"}}`,
	"half a surrogate":     `{"jsonrpc":"2.0","id":%s,"method":"a","params":{"x":"\ud800"}}`,
	"bare NUL":             `{"jsonrpc":"2.0","id":%s,"method":"a","params":"` + "\x00" + `"}`,
	"deep":                 `{"jsonrpc":"2.0","id":%s,"method":"a","params":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`,
	"trailing":             `{"jsonrpc":"2.0","id":%s,"method":"a"} {}`,
	"no JSON":              `{"jsonrpc":"2.0","id":%s,"method":"a",}`,
	"answer and request":   `{"jsonrpc":"2.0","id":%s,"method":"a","result":{}}`,
	"method is no text":    `{"jsonrpc":"2.0","id":%s,"method":["tools/call"]}`,
}

func TestSmugglingByTheHost(t *testing.T) {
	w := newWorld(t, everything())
	n := 0
	for name, format := range smuggled {
		t.Run(name, func(t *testing.T) {
			n++
			w.host.say(fmt.Sprintf(format, fmt.Sprint(n)))
			w.host.hearsOf(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32`, n))
			w.silence(t)
		})
	}
	for _, id := range []string{"null", "true", "1.5", "{}", `"` + strings.Repeat("x", 2000) + `"`} {
		w.host.say(`{"jsonrpc":"2.0","id":` + id + `,"method":"a"}`)
		w.host.hearsOf(`"id":null,"error":{`)
	}
	w.host.say(`[{"jsonrpc":"2.0","id":1,"method":"a"}]`)
	w.host.hearsOf(`"id":null,"error":{"code":-32600`)
	w.host.say(`{"jsonrpc":"2.0","id":77,"method":"x","params":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`)
	w.server.hearsOf("77")
}

func TestSmugglingByTheServer(t *testing.T) {
	w := newWorld(t, everything())
	n := 0
	for _, format := range []string{
		`{"jsonrpc":"2.0","id":%d,"result":{"content":[]},"result":{}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{"content":[]},"Result":{}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{"content":[],"content":[1]}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{},"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{"x":"` + "\xc3\x28" + `"}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}}`,
		`{"jsonrpc":"2.0","id":%d,"result":{"InputRequests":{}}}`,
		`{"jsonrpc":"2.0","id":%d,"result":`,
	} {
		n++
		w.passes(t, w.host, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"x"}}`, n))
		w.server.say(fmt.Sprintf(format, n))
		w.host.hearsOf(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-31000,`, n))
		w.silence(t)
	}
	w.noted(t, "a key stands twice")
}

func TestBatches(t *testing.T) {
	p := open()
	p.Listed, p.Tools = true, []string{"a"}
	w := newWorld(t, p)
	w.agreed(t, "2025-03-26")
	call := func(id, name string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + name + `"}}`
	}
	w.passes(t, w.host, `[`+call("1", "a")+` , `+call("2", "a")+`]`)
	w.host.say(`[` + call("3", "b") + `, ` + call("4", "a") + ` ,` + call("5", "c") + `]`)
	w.server.hears(`[` + call("4", "a") + `]`)
	w.host.hearsOf(`"id":3,"error":{"code":-32602,"message":"Unknown tool: b"`)
	w.host.hearsOf(`"id":5,"error"`)
	w.passes(t, w.server, `[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]`)
	w.server.say(`[{"jsonrpc":"2.0","id":8,"method":"sampling/createMessage"},{"jsonrpc":"2.0","id":4,"result":{}},{"jsonrpc":"2.0","id":4,"result":{}}]`)
	w.host.hears(`[{"jsonrpc":"2.0","id":4,"result":{}}]`)
	w.server.hearsOf(`"id":8,"error":{"code":-32601`)
	w.host.say("[]")
	w.host.hearsOf(`"id":null`)

	other := newWorld(t, p)
	other.agreed(t, "2025-06-18")
	other.passes(t, other.host, call("1", "a"))
	other.server.say(`[{"jsonrpc":"2.0","id":1,"result":{}}]`)
	other.host.hearsOf(`"id":1,"error":{"code":-31000`)
	other.noted(t, "several messages in one list")
}

func TestEnds(t *testing.T) {
	t.Run("the host ends its input", func(t *testing.T) {
		w := newWorld(t, open())
		w.passes(t, w.host, `{"jsonrpc":"2.0","id":1,"method":"slow"}`)
		w.host.in.Close()
		if rest, err := io.ReadAll(w.server.read); len(rest) > 0 || err != nil {
			t.Errorf("the server reads %q, %v", rest, err)
		}
		select {
		case <-w.relay.HostLeft():
			t.Error("the host counts as gone while it waits for an answer")
		case <-time.After(50 * time.Millisecond):
		}
		w.passes(t, w.server, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		<-w.relay.HostLeft()
	})
	t.Run("the host reads no more", func(t *testing.T) {
		w := newWorld(t, open())
		w.host.out.Close()
		for {
			if _, err := w.server.in.WriteString(`{"jsonrpc":"2.0","method":"m"}` + "\n"); err != nil {
				break // as on a pipe without a guard
			}
			time.Sleep(time.Millisecond)
		}
		<-w.relay.Drained()
	})
	t.Run("the server reads no more", func(t *testing.T) {
		w := newWorld(t, open())
		w.server.out.Close()
		for {
			if _, err := w.host.in.WriteString(`{"jsonrpc":"2.0","method":"m"}` + "\n"); err != nil {
				break
			}
			time.Sleep(time.Millisecond)
		}
		w.passes(t, w.server, `{"jsonrpc":"2.0","method":"still"}`)
	})
}

// A side that does not read stops the other one from being read, and nothing is lost.
func TestBackPressure(t *testing.T) {
	for _, from := range []string{"host", "server"} {
		t.Run(from, func(t *testing.T) {
			w := newWorld(t, open())
			writer, reader := w.host, w.server
			if from == "server" {
				writer, reader = w.server, w.host
			}
			line := `{"jsonrpc":"2.0","method":"m","params":"` + strings.Repeat("x", 8<<10) + `"}` + "\n"
			_ = writer.in.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			sent := 0
			for {
				n, err := writer.in.WriteString(line)
				sent += n
				if err != nil {
					break
				}
				if sent > 8<<20 {
					t.Fatalf("%d bytes were taken while nobody read", sent)
				}
			}
			go func() { // the rest of the line that was cut
				_ = writer.in.SetWriteDeadline(time.Now().Add(wait))
				_, _ = writer.in.WriteString(line[sent%len(line):])
			}()
			for got := 0; got < sent/len(line)+1; got++ {
				reader.hears(strings.TrimSuffix(line, "\n"))
			}
		})
	}
}

// A side that asks for what is refused and does not read the answers is not read either: what
// waits for it is bounded.
func TestFloodOfRefusals(t *testing.T) {
	p := open()
	p.Listed = true
	for _, from := range []string{"host", "server"} {
		t.Run(from, func(t *testing.T) {
			w := newWorld(t, p)
			flooder, line := w.host, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}`+"\n"
			if from == "server" {
				flooder, line = w.server, `{"jsonrpc":"2.0","id":7,"method":"roots/list"}`+"\n"
			}
			_ = flooder.in.SetWriteDeadline(time.Now().Add(300 * time.Millisecond))
			sent := 0
			for {
				n, err := flooder.in.WriteString(line)
				sent += n
				if err != nil {
					break
				}
				if sent > 4<<20 {
					t.Fatalf("%d bytes were taken while no answer was read", sent)
				}
			}
			go func() {
				_ = flooder.in.SetWriteDeadline(time.Now().Add(wait))
				_, _ = flooder.in.WriteString(line[sent%len(line):])
			}()
			for range sent/len(line) + 1 {
				flooder.hearsOf(`"id":7,"error":{`)
			}
			w.silence(t)
		})
	}
}
