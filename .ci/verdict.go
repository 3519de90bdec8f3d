//go:build ignore

// Command verdict reads the stream of `go test -json` and says how it went: it shows what
// failed, and counts a skipped test as failed, since a proof that is skipped proves
// nothing.
//
//	go test -json ./... | go run .ci/verdict.go LABEL COUNTS
//
// It adds a line "PASSED FAILED" to the file COUNTS. Exit status: 0 when something ran
// and all of it passed, else 1.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// event is one line of the stream (cmd/test2json).
type event struct {
	Action, Package, ImportPath, Test, Output string
}

// verdict collects what became of the tests.
type verdict struct {
	output  map[string][]string // by package and test
	failed  map[string]int      // failed tests by package
	passed  int
	lost    int // failed or skipped
	reports []string
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: verdict LABEL COUNTS < stream")
		os.Exit(2)
	}
	v := &verdict{output: map[string][]string{}, failed: map[string]int{}}
	if err := v.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
		os.Exit(1)
	}
	if v.passed+v.lost == 0 {
		v.lose("nothing ran", nil)
	}
	for _, report := range v.reports {
		fmt.Println(report)
	}
	fmt.Printf("%s: %d passed, %d failed\n", os.Args[1], v.passed, v.lost)
	if err := count(os.Args[2], v.passed, v.lost); err != nil {
		fmt.Fprintln(os.Stderr, "verdict:", err)
		os.Exit(1)
	}
	if v.lost > 0 {
		os.Exit(1)
	}
}

func (v *verdict) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil && e.Action != "" {
				v.event(e)
			} else {
				os.Stdout.Write(line)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the stream: %w", err)
		}
	}
}

func (v *verdict) event(e event) {
	key := e.Package + " " + e.Test
	switch {
	case e.Action == "output" || e.Action == "build-output":
		if e.Action == "build-output" {
			key = e.ImportPath + " "
		}
		v.output[key] = append(v.output[key], e.Output)
	case e.Action == "build-fail":
		v.lose("does not build: "+e.ImportPath, v.output[e.ImportPath+" "])
	case e.Test != "" && e.Action == "pass":
		v.passed++
		delete(v.output, key)
	case e.Test != "" && e.Action == "fail":
		v.failed[e.Package]++
		v.lose("failed: "+key, v.output[key])
	case e.Test != "" && e.Action == "skip":
		v.failed[e.Package]++
		v.lose("skipped, which counts as failed: "+key, v.output[key])
	case e.Test == "" && e.Action == "fail" && v.failed[e.Package] == 0:
		v.lose("failed as a whole: "+e.Package, append(v.unfinished(e.Package), v.output[key]...))
	}
}

// unfinished is the output of the package's tests that had no end: a crash is there.
func (v *verdict) unfinished(pkg string) (lines []string) {
	var keys []string
	for key := range v.output {
		if strings.HasPrefix(key, pkg+" ") && key != pkg+" " {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		lines = append(lines, v.output[key]...)
	}
	return lines
}

func (v *verdict) lose(what string, output []string) {
	v.lost++
	v.reports = append(v.reports, "--- "+what+"\n"+strings.Join(output, ""))
}

// count adds a line to the file that the caller sums up.
func count(path string, passed, failed int) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the counts: %w", err)
	}
	if _, err := fmt.Fprintln(file, passed, failed); err != nil {
		return fmt.Errorf("adding to the counts: %w", err)
	}
	return file.Close()
}
