// Command client asks the test network for things, without a C library. Each argument is
// one thing to ask for; each answer is one line of JSON: {ask, ok, text, code}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// patience ends a client whose peer is silent; nothing that passes waits so long.
const patience = 20 * time.Second

type answer struct {
	Ask  string `json:"ask"`
	OK   bool   `json:"ok"`
	Text string `json:"text"`
	Code string `json:"code"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	for _, ask := range os.Args[1:] {
		a := answer{Ask: ask, OK: true}
		var err error
		if a.Text, err = perform(strings.Split(ask, " ")); err != nil {
			a = answer{Ask: ask, Text: err.Error(), Code: codeOf(err)}
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, "client:", err)
			os.Exit(1)
		}
	}
}

func perform(words []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case words[0] == "get" && len(words) == 2:
		return get(ctx, http.DefaultTransport, words[1])
	case words[0] == "via" && len(words) == 3:
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort(words[2], port))
		}}
		return get(ctx, transport, words[1])
	case words[0] == "lookup" && len(words) == 2:
		found, err := net.DefaultResolver.LookupHost(ctx, words[1])
		return strings.Join(found, " "), err
	case (words[0] == "tcp" || words[0] == "udp") && len(words) == 3:
		return echo(ctx, words[0], net.JoinHostPort(words[1], words[2]))
	}
	return "", errors.New("unknown ask")
}

func get(ctx context.Context, transport http.RoundTripper, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return "", err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

func echo(ctx context.Context, network, address string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "ping"); err != nil {
		return "", err
	}
	buffer := make([]byte, 64)
	n, err := conn.Read(buffer)
	return string(buffer[:n]), err
}

// codeOf names the reason: the errno, or the resolver's own.
func codeOf(err error) string {
	if e, ok := errors.AsType[*net.DNSError](err); ok {
		if e.IsNotFound {
			return "no such host"
		}
		return e.Error()
	}
	if e, ok := errors.AsType[syscall.Errno](err); ok {
		names := map[syscall.Errno]string{
			syscall.EACCES: "EACCES", syscall.EPERM: "EPERM", syscall.ECONNRESET: "ECONNRESET", syscall.ECONNREFUSED: "ECONNREFUSED",
			syscall.EAFNOSUPPORT: "EAFNOSUPPORT", syscall.ENETUNREACH: "ENETUNREACH", syscall.EDESTADDRREQ: "EDESTADDRREQ",
		}
		if name := names[e]; name != "" {
			return name
		}
		return e.Error()
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}
