package race

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Call is one tools/call request.
type Call struct {
	Tool string
	Args map[string]any
}

// Answer is what came back for a call.
type Answer struct {
	Raw    []byte // the whole JSON-RPC line
	Text   string // all text of the result, or the error's message
	Failed bool   // isError, or a JSON-RPC error
}

// answerTimeout bounds the wait for one burst. A server that needs longer hangs.
const answerTimeout = 30 * time.Second

// Client drives one server over stdio. It writes JSON-RPC itself: a burst has to reach
// the server in one write, and the judge reads the raw answers.
type Client struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan []byte
	stderr tail
	tools  []string
	nextID int
}

// StartClient starts cmd as a server and makes the protocol's handshake with it.
func StartClient(ctx context.Context, cmd *exec.Cmd) (*Client, error) {
	c := &Client{cmd: cmd, lines: make(chan []byte, files)}
	cmd.Stderr = &c.stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the server's input: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("opening the server's output: %w", err)
	}
	c.in = in
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	go c.read(out)
	if err := c.handshake(ctx); err != nil {
		stopErr := c.Close()
		return nil, errors.Join(fmt.Errorf("%w; stderr: %s", err, c.stderr.String()), stopErr)
	}
	return c, nil
}

func (c *Client) read(out io.Reader) {
	defer close(c.lines)
	r := bufio.NewReaderSize(out, 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			c.lines <- line
		}
		if err != nil {
			return
		}
	}
}

func (c *Client) handshake(ctx context.Context) error {
	hello := map[string]any{
		"protocolVersion": "2025-06-18",
		"capabilities":    map[string]any{},
		"clientInfo":      map[string]any{"name": "stockade-race", "version": "1"},
	}
	if _, err := c.request(ctx, "initialize", hello); err != nil {
		return fmt.Errorf("greeting the server: %w", err)
	}
	if err := c.write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n")); err != nil {
		return err
	}
	raw, err := c.request(ctx, "tools/list", map[string]any{})
	if err != nil {
		return fmt.Errorf("listing the server's tools: %w", err)
	}
	var list struct {
		Result struct {
			Tools []struct {
				Name string `json:"name"`
			} `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fmt.Errorf("reading the server's tools: %w", err)
	}
	for _, t := range list.Result.Tools {
		c.tools = append(c.tools, t.Name)
	}
	return nil
}

// Tools are the names of the server's tools.
func (c *Client) Tools() []string { return c.tools }

// Stderr is the end of what the server wrote to its standard error.
func (c *Client) Stderr() string { return c.stderr.String() }

// Burst sends all calls in one write and waits for their answers, which come back in the
// order of calls. before runs right before the write.
func (c *Client) Burst(ctx context.Context, calls []Call, before func() error) ([]Answer, error) {
	var batch bytes.Buffer
	first := c.nextID
	for _, call := range calls {
		params := map[string]any{"name": call.Tool, "arguments": call.Args}
		if err := c.encode(&batch, "tools/call", params); err != nil {
			return nil, err
		}
	}
	if err := before(); err != nil {
		return nil, err
	}
	if err := c.write(batch.Bytes()); err != nil {
		return nil, err
	}
	return c.answers(ctx, first, len(calls))
}

func (c *Client) answers(ctx context.Context, first, count int) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	answers := make([]Answer, count)
	for left := count; left > 0; {
		id, raw, err := c.next(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w with %d of %d answers missing; stderr: %s", err, left, count, c.stderr.String())
		}
		if id < first || id >= first+count {
			continue
		}
		if answers[id-first], err = parseAnswer(raw); err != nil {
			return nil, err
		}
		left--
	}
	return answers, nil
}

// next returns the next answer's id and line; -1 for messages that answer nothing.
func (c *Client) next(ctx context.Context) (int, []byte, error) {
	select {
	case <-ctx.Done():
		return 0, nil, fmt.Errorf("waiting for the server: %w", ctx.Err())
	case raw, open := <-c.lines:
		if !open {
			return 0, nil, errors.New("the server closed its output")
		}
		var head struct {
			ID     *int   `json:"id"`
			Method string `json:"method"`
		}
		if err := json.Unmarshal(raw, &head); err != nil {
			return 0, nil, fmt.Errorf("the server wrote something that is no message: %w", err)
		}
		if head.ID == nil || head.Method != "" {
			return -1, raw, nil
		}
		return *head.ID, raw, nil
	}
}

func (c *Client) request(ctx context.Context, method string, params any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var line bytes.Buffer
	want := c.nextID
	if err := c.encode(&line, method, params); err != nil {
		return nil, err
	}
	if err := c.write(line.Bytes()); err != nil {
		return nil, err
	}
	for {
		id, raw, err := c.next(ctx)
		if err != nil || id == want {
			return raw, err
		}
	}
}

func (c *Client) encode(to *bytes.Buffer, method string, params any) error {
	message := map[string]any{"jsonrpc": "2.0", "id": c.nextID, "method": method, "params": params}
	c.nextID++
	if err := json.NewEncoder(to).Encode(message); err != nil {
		return fmt.Errorf("encoding a %s request: %w", method, err)
	}
	return nil
}

func (c *Client) write(line []byte) error {
	if _, err := c.in.Write(line); err != nil {
		return fmt.Errorf("writing to the server: %w; stderr: %s", err, c.stderr.String())
	}
	return nil
}

// Close ends the server's input and waits for it to exit, at most five seconds.
func (c *Client) Close() error {
	if err := c.in.Close(); err != nil {
		return fmt.Errorf("closing the server's input: %w", err)
	}
	kill := time.AfterFunc(5*time.Second, func() { _ = c.cmd.Process.Kill() })
	defer kill.Stop()
	for range c.lines { // the reader ends when the server's output does
	}
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("ending the server: %w; stderr: %s", err, c.stderr.String())
	}
	return nil
}

func parseAnswer(raw []byte) (Answer, error) {
	var m struct {
		Error *struct {
			Message string `json:"message"`
		} `json:"error"`
		Result struct {
			IsError bool `json:"isError"`
			Content []struct {
				Text string `json:"text"`
			} `json:"content"`
		} `json:"result"`
	}
	if err := json.Unmarshal(raw, &m); err != nil {
		return Answer{}, fmt.Errorf("reading an answer: %w", err)
	}
	if m.Error != nil {
		return Answer{Raw: raw, Text: m.Error.Message, Failed: true}, nil
	}
	var text strings.Builder
	for _, part := range m.Result.Content {
		text.WriteString(part.Text)
	}
	return Answer{Raw: raw, Text: text.String(), Failed: m.Result.IsError}, nil
}

// tail keeps the last 4 KiB written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailSize = 4096

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - tailSize; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
