package guard_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"stockade/sandbox/guard"
)

// benched are the two ends of a conversation, over the guard or over plain pipes.
type benched struct {
	hostIn, serverIn   *os.File
	hostOut, serverOut *bufio.Reader
}

func benchEnds(b *testing.B, over string) benched {
	b.Helper()
	hostOut, hostIn := pipe(b)
	serverOut, serverIn := pipe(b)
	if over == "pipe" {
		return benched{hostIn, serverIn, bufio.NewReaderSize(serverOut, 1<<20), bufio.NewReaderSize(hostOut, 1<<20)}
	}
	toHost, fromGuard := pipe(b)
	toServer, fromGuardToServer := pipe(b)
	p := everything()
	p.Listed, p.Tools = true, []string{"tool_*"}
	p.CallTimeout, p.ConcurrentCalls = time.Minute, 8
	relay, err := guard.New(p, guard.Streams{FromHost: hostOut, ToHost: fromGuard, FromServer: serverOut, ToServer: fromGuardToServer}, func(string) {})
	if err != nil {
		b.Fatal(err)
	}
	relay.Start()
	return benched{hostIn, serverIn, bufio.NewReaderSize(toHost, 1<<20), bufio.NewReaderSize(toServer, 1<<20)}
}

// turns is a host that asks and a server that answers, b.N times.
func (e benched) turns(b *testing.B, ask func(int) string, answer func(int) string) {
	b.Helper()
	go func() {
		for i := range b.N {
			if _, err := e.serverOut.ReadSlice('\n'); err != nil {
				return
			}
			if _, err := e.serverIn.WriteString(answer(i)); err != nil {
				return
			}
		}
	}()
	b.ResetTimer()
	for i := range b.N {
		if _, err := e.hostIn.WriteString(ask(i)); err != nil {
			b.Fatal(err)
		}
		for {
			_, err := e.hostOut.ReadSlice('\n')
			if err == nil {
				break
			}
			if err != bufio.ErrBufferFull { //nolint:errorlint // as bufio returns it
				b.Fatal(err)
			}
		}
	}
	b.StopTimer()
}

func both(b *testing.B, bench func(b *testing.B, e benched)) {
	b.Helper()
	for _, how := range []string{"pipe", "guard"} {
		b.Run(how, func(b *testing.B) {
			b.ReportAllocs()
			bench(b, benchEnds(b, how))
		})
	}
}

// BenchmarkCall is a small call with its answer: the difference is what a call pays.
func BenchmarkCall(b *testing.B) {
	both(b, func(b *testing.B, e benched) {
		b.Helper()
		e.turns(b, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool_read","arguments":{"path":"/home/me/project/file.txt"}}}`+"\n", i)
		}, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"some content of a file, one line of it"}]}}`+"\n", i)
		})
	})
}

// Benchmark76KBToolList is the largest list of a stock server.
func Benchmark76KBToolList(b *testing.B) {
	var tools []string
	for i := range 22 {
		properties := strings.Repeat(`"property":{"type":"string","description":"what the property is for, at some length"},`, 40)
		for j := range 40 {
			properties = strings.Replace(properties, `"property"`, fmt.Sprintf(`"property_%d"`, j), 1)
		}
		tools = append(tools, fmt.Sprintf(`{"name":"tool_%d","description":"d","inputSchema":{"type":"object","properties":{%s}}}`, i, strings.TrimSuffix(properties, ",")))
	}
	list := strings.Join(tools, ",")
	both(b, func(b *testing.B, e benched) {
		b.Helper()
		b.SetBytes(int64(len(list)))
		e.turns(b, func(i int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", i) },
			func(i int) string {
				return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s]}}`+"\n", i, list)
			})
	})
}

// BenchmarkThroughput is results of 4 MiB.
func BenchmarkThroughput(b *testing.B) {
	text := strings.Repeat("A picture, or a page of text. \\n", 4<<20/32)
	both(b, func(b *testing.B, e benched) {
		b.Helper()
		b.SetBytes(int64(len(text)))
		e.turns(b, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"tool_read"}}`+"\n", i)
		}, func(i int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}`+"\n", i, text)
		})
	})
}

// BenchmarkResident relays one message of 32 MiB and reports what this process holds before
// and after it, and at most, beyond what it held when the relay was made.
func BenchmarkResident(b *testing.B) {
	for range b.N {
		e := benchEnds(b, "guard")
		before, _ := resident(b)
		const chunk = 64 << 10
		const head, tail = `{"jsonrpc":"2.0","method":"m","params":"`, "\"}\n"
		go func() {
			_, _ = e.serverIn.WriteString(head)
			text := strings.Repeat("x", chunk)
			for range (guard.DefaultMessageSize - chunk) / chunk {
				_, _ = e.serverIn.WriteString(text)
			}
			_, _ = e.serverIn.WriteString(tail + "{}\n")
		}()
		if _, err := io.CopyN(io.Discard, e.hostOut, int64(guard.DefaultMessageSize-chunk+len(head)+len(tail))); err != nil {
			b.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // until the buffer was given back
		after, most := resident(b)
		b.ReportMetric(float64(before)/1024, "MiB-before")
		b.ReportMetric(float64(most)/1024, "MiB-most")
		b.ReportMetric(float64(after)/1024, "MiB-after")
		_ = e.serverIn.Close()
		_ = e.hostIn.Close()
	}
}

// resident is VmRSS and VmHWM of this process, in KiB (proc_pid_status(5)).
func resident(b *testing.B) (now, most int) {
	b.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d", &now)
		_, _ = fmt.Sscanf(line, "VmHWM: %d", &most)
	}
	return now, most
}
