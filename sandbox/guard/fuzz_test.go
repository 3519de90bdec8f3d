package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// FuzzGuard feeds any bytes to both directions. What passes is strict JSON; without edits it
// is the line itself, and with edits it holds nothing that was not there, but for the guard's
// own results. What the guard says itself is JSON in one line.
func FuzzGuard(f *testing.F) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"b"},{"name":"a"} , {"name":"c"}],"nextCursor":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"long enough to be over the limit of sixteen"}]}}`,
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"roots":{},"x":{},"sampling":{}}}}`,
		`[{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}},{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}]`,
		`{"jsonrpc":"2.0","id":2,"result":{"inputRequests":{"a":{"method":"roots/list"}}}}`,
		"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"method\":\"n\"}", "noise", `"\`, `{"id":1,"id":2`, "[[[[", `{"a":{"b":[}`,
	} {
		f.Add([]byte(line + "\n"))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		s := newSession(Policy{Listed: true, Tools: []string{"a*"}, MessageSize: 1 << 20, ResultSize: 16}, time.Now)
		s.version = batchVersion
		for key, method := range map[string]string{"n1": methodList, "n2": methodCall, "sx": methodTaskGet} {
			s.fromHost.open[key] = &waiting{id: []byte("1"), method: method, tool: "a"}
		}
		s.fromServer.open["n1"] = &waiting{}
		var r reader
		for _, judge := range []func(*reader, []byte) verdict{s.hostLine, s.serverLine} {
			before := bytes.Clone(line)
			v := judge(&r, line)
			if !bytes.Equal(before, line) {
				t.Fatal("the line was changed in place")
			}
			for _, own := range append(v.toHost, v.toServer...) {
				if !jsontext.Value(own).IsValid() || bytes.IndexByte(own, '\n') != len(own)-1 {
					t.Fatalf("the guard says %q", own)
				}
			}
			if !v.pass {
				continue
			}
			out := spliced(nil, line, v.edits)
			if !jsontext.Value(out).IsValid() {
				t.Fatalf("%q became %q", line, out)
			}
			if len(v.edits) == 0 {
				if !bytes.Equal(out, line) {
					t.Fatalf("%q became %q", line, out)
				}
				continue
			}
			var was, is any
			if json.Unmarshal(line, &was) != nil || json.Unmarshal(out, &is) != nil {
				t.Fatalf("%q became %q", line, out)
			}
			if !within(is, was) {
				t.Fatalf("%q became %q, which holds more", line, out)
			}
		}
	})
}

// within tells whether a value is another one with parts left out, in order, or a result of
// the guard's own.
func within(is, was any) bool {
	switch is := is.(type) {
	case map[string]any:
		if is["isError"] == true {
			return true
		}
		of, ok := was.(map[string]any)
		for key, value := range is {
			if ok = ok && within(value, of[key]); !ok {
				return false
			}
		}
		return ok
	case []any:
		of, ok := was.([]any)
		for _, value := range is {
			for len(of) > 0 && !within(value, of[0]) {
				of = of[1:]
			}
			if len(of) == 0 {
				return false
			}
			of = of[1:]
		}
		return ok
	}
	return reflect.DeepEqual(is, was)
}

// FuzzLines cuts any bytes into lines: none is lost, none is longer than the limit, and what
// is thrown away is what is longer.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccccccccccccccccccccccccccccc\nd"), uint8(16))
	f.Fuzz(func(t *testing.T, text []byte, limit uint8) {
		for _, from := range []io.Reader{bytes.NewReader(text), iotest.OneByteReader(bytes.NewReader(text)), iotest.DataErrReader(bytes.NewReader(text))} {
			l, err := newLines(from, int(limit))
			if err != nil {
				t.Fatal(err)
			}
			rest := text
			for len(rest) > 0 {
				line, after, newline := bytes.Cut(rest, []byte("\n"))
				whole := rest[:len(rest)-len(after)]
				if !newline {
					whole, after = rest, nil
				}
				got, err := l.next()
				var lost *tooLarge
				switch {
				case len(line) > int(limit):
					if !errors.As(err, &lost) || lost.size != int64(len(line)) {
						t.Fatalf("%q with limit %d: got %q, %v", line, limit, got, err)
					}
				case err != nil || !bytes.Equal(got, whole):
					t.Fatalf("got %q, %v, want %q", got, err, whole)
				}
				rest = after
			}
			if got, err := l.next(); !errors.Is(err, io.EOF) {
				t.Fatalf("got %q, %v at the end", got, err)
			}
			l.close()
		}
	})
}

// TestSlidingMinute: the limit holds for any minute, not for one by the clock.
func TestSlidingMinute(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSession(Policy{CallsPerMinute: 2, MessageSize: 1 << 20}, func() time.Time { return now })
	call := func(want bool) {
		t.Helper()
		if _, refused := s.call(&waiting{tool: "x"}, false); refused == want {
			t.Errorf("at %v: refused is %v", now, refused)
		}
	}
	call(true)
	now = now.Add(50 * time.Second)
	call(true)
	call(false)
	now = now.Add(9 * time.Second)
	call(false)
	now = now.Add(time.Second)
	call(true)
	call(false)
	now = now.Add(50 * time.Second)
	call(true)
	call(false)
}

// A late answer stays known until as many others were given up.
func TestGivenUp(t *testing.T) {
	f := newInFlight()
	for i := range MaxInFlight + 1 {
		key := "n" + string(rune(i))
		f.open[key] = &waiting{}
		f.giveUp(key, dropLate)
	}
	if f.known("n\x00") || !f.known("n\x01") || len(f.past) != MaxInFlight || len(f.order) != MaxInFlight {
		t.Errorf("%d and %d are known", len(f.past), len(f.order))
	}
	if _, known := f.lateAnswer("n\x01"); !known || f.known("n\x01") {
		t.Error("a late answer is not forgotten")
	}
}
