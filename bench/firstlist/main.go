// Command firstlist measures how long command lines take until an MCP server behind them
// has answered its first tools/list: what a person waits for when a host starts.
//
//	firstlist ROUNDS :: NAME COMMAND [ARG]... [:: NAME COMMAND [ARG]...]...
//
// The rows are interleaved, so that what else the machine does meets all of them. It prints
// the median, the least and the largest time of each in milliseconds, and the median as a
// ratio to the first row's.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// requests are what a client writes: the answer with id 2 is the list.
const requests = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"firstlist","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
`

// patience is how long one start may take.
const patience = 3 * time.Minute

type row struct {
	name  string
	words []string
	took  []time.Duration
}

func main() {
	if err := measure(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "firstlist:", err)
		os.Exit(1)
	}
}

func measure(args []string, to io.Writer) error {
	rounds, rows, err := parse(args)
	if err != nil {
		return err
	}
	for range rounds {
		for i := range rows {
			took, err := once(rows[i].words)
			if err != nil {
				return fmt.Errorf("%s: %w", rows[i].name, err)
			}
			rows[i].took = append(rows[i].took, took)
		}
	}
	base := median(rows[0].took)
	for _, r := range rows {
		m := median(r.took)
		fmt.Fprintf(to, "%-28s median %7.0f   least %7.0f   most %7.0f ms   ratio %.3f\n", r.name,
			ms(m), ms(slices.Min(r.took)), ms(slices.Max(r.took)), float64(m)/float64(base))
	}
	return nil
}

func parse(args []string) (int, []row, error) {
	if len(args) < 3 || args[1] != "::" {
		return 0, nil, errors.New("want: firstlist ROUNDS :: NAME COMMAND, and more rows of that form")
	}
	rounds, err := strconv.Atoi(args[0])
	if err != nil || rounds < 1 {
		return 0, nil, fmt.Errorf("the number of rounds is %q", args[0])
	}
	var rows []row
	for _, word := range args[1:] {
		switch last := len(rows) - 1; {
		case word == "::":
			rows = append(rows, row{})
		case rows[last].name == "":
			rows[last].name = word
		default:
			rows[last].words = append(rows[last].words, word)
		}
	}
	for _, r := range rows {
		if len(r.words) == 0 {
			return 0, nil, fmt.Errorf("row %q has no command", r.name)
		}
	}
	return rounds, rows, nil
}

// once starts a command line and waits for its list of tools.
func once(words []string) (time.Duration, error) {
	cmd := exec.Command(words[0], words[1:]...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_, err = io.WriteString(in, requests)
	if err == nil {
		err = listed(out)
	}
	took := time.Since(begun)
	if closeErr := in.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		_ = cmd.Process.Kill()
		return 0, errors.Join(err, cmd.Wait(), fmt.Errorf("standard error: %s", complaint.Bytes()))
	}
	return took, cmd.Wait()
}

// listed reads until the list of tools has come.
func listed(out io.Reader) error {
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var answer struct {
			ID     int `json:"id"`
			Result *struct {
				Tools []json.RawMessage `json:"tools"`
			} `json:"result"`
		}
		if json.Unmarshal(lines.Bytes(), &answer) != nil || answer.ID != 2 {
			continue
		}
		if answer.Result == nil || len(answer.Result.Tools) == 0 {
			return fmt.Errorf("the list holds no tools: %.200s", lines.Bytes())
		}
		return nil
	}
	return errors.Join(errors.New("no list of tools came"), lines.Err())
}

func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
