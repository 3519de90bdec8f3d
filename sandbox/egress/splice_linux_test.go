package egress

import (
	"errors"
	"io"
	"net"
	"runtime"
	"testing"
	"time"
)

// pair is a TCP connection and its other end.
func pair(t *testing.T) (*net.TCPConn, *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	here, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close() })
	return here.(*net.TCPConn), there.(*net.TCPConn)
}

// A client that has ended its own direction and is gone does not hold a connection to a
// server that says nothing.
func TestSpliceClientGone(t *testing.T) {
	client, accepted := pair(t)
	dialed, server := pair(t)
	w := &wires{client: accepted, upstream: dialed}
	down := make(chan struct{})
	go func() { defer close(down); w.down() }()
	client.CloseWrite()
	w.up()
	if n, err := server.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Fatalf("the server saw %d bytes, %v; want an end", n, err)
	}
	// Half an end is none: the server may still answer.
	tick := make(chan time.Time, 1)
	watched := make(chan struct{})
	go func() { defer close(watched); w.watch(down, tick) }()
	tick <- time.Now()
	tick <- time.Now() // taken once the first was dealt with
	io.WriteString(server, "x")
	if n, err := client.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Fatalf("the client saw %d bytes, %v", n, err)
	}
	client.SetLinger(0)
	client.Close()
	for !isReset(accepted) { // on loopback it is there at once
		runtime.Gosched()
	}
	tick <- time.Now()
	<-watched // or the test ends by its own time limit
	for !isReset(server) {
		runtime.Gosched()
	}
}
