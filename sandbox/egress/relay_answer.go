package egress

import (
	"bytes"
	"io"
	"strconv"
	"sync/atomic"
	"time"
)

// leg is a connection to a server, and what passes its answers on.
type leg struct {
	wires
	retired  atomic.Bool   // its end is not the client's
	switched chan bool     // tells whether the server agreed to a WebSocket; then closed
	done     chan struct{} // closed when no more comes from the server
}

// answers passes on what the server sends.
func (l *leg) answers(asked upgrade) {
	defer close(l.done)
	defer close(l.switched)
	if asked == toWebSocket {
		agreed, err := l.firstAnswer()
		if err != nil {
			l.fail()
			return
		}
		l.switched <- agreed
	}
	_, err := io.Copy(l.client, l.upstream)
	switch {
	case l.retired.Load():
	case err == nil && (l.toldUpstream.Load() || !isReset(l.upstream)):
		l.toldClient.Store(true)
		_ = l.client.CloseWrite()
	default:
		l.fail()
	}
}

// fail ends the client's connection too.
func (l *leg) fail() {
	if l.retired.Load() {
		return
	}
	l.broken.Store(true)
	abort(l.client)
	abort(l.upstream)
}

// firstAnswer passes the head of the first answer on, and those of interim ones before it
// (RFC 9110 15.2), and tells whether it agrees to change the protocol.
func (l *leg) firstAnswer() (bool, error) {
	var head []byte
	buffer := make([]byte, 4<<10)
	for {
		n, err := l.upstream.Read(buffer)
		if n == 0 && err != nil {
			return false, err
		}
		head = append(head, buffer[:n]...)
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return false, err
		}
		for {
			end := bytes.Index(head, []byte("\r\n\r\n"))
			if end < 0 {
				break
			}
			status := answerStatus(head)
			if status < 100 || status > 199 || status == 101 {
				return status == 101, nil
			}
			head = head[end+4:]
		}
		if len(head) > firstBytes {
			return false, nil // not an answer that agrees
		}
	}
}

// answerStatus reads the status of an answer; 0 for what is none.
func answerStatus(head []byte) int64 {
	line, _, _ := bytes.Cut(head, []byte("\r\n"))
	code, found := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || len(code) < 3 || len(code) > 3 && code[3] != ' ' {
		return 0
	}
	status, _ := digits(string(code[:3]), 10)
	return status
}

// explain tells an HTTP client why, and ends.
func (v *visit) explain(why *refusal) {
	text := "blocked by profile: " + why.rule + "\n"
	if why.hint != "" {
		text += "hint: " + why.hint + "\n"
	}
	answer := "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: " +
		strconv.Itoa(len(text)) + "\r\nConnection: close\r\n\r\n" + text
	deadline := time.Now().Add(lingerWait)
	if v.client.SetDeadline(deadline) != nil {
		return
	}
	if _, err := io.WriteString(v.client, answer); err != nil || v.client.CloseWrite() != nil {
		return
	}
	// Closing over unread bytes resets the connection, and the client may lose the answer.
	_, _ = io.CopyN(io.Discard, v.client, lingerBytes)
}

// lingerWait and lingerBytes bound what a refused client may still send.
const (
	lingerWait  = time.Second
	lingerBytes = 1 << 20
)
