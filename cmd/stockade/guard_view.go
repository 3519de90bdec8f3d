package main

import (
	"strconv"
	"strings"

	"stockade/sandbox/guard"
)

// guardView is the guard of a plan. Tools is null when every tool passes; 0 and "" are no
// limit; sizes are bytes.
type guardView struct {
	Pins            string   `json:"pins"`
	Tools           []string `json:"tools"`
	CallsPerMinute  int      `json:"calls_per_minute"`
	ConcurrentCalls int      `json:"concurrent_calls"`
	CallTimeout     string   `json:"call_timeout"`
	MessageSize     int      `json:"message_size"`
	ResultSize      int      `json:"result_size"`
	Sampling        string   `json:"sampling"`
	Elicitation     string   `json:"elicitation"`
	Roots           string   `json:"roots"`
}

func viewGuard(p *guard.Policy) *guardView {
	if p == nil {
		return nil
	}
	v := &guardView{
		Pins: "off", CallsPerMinute: p.CallsPerMinute, ConcurrentCalls: p.ConcurrentCalls,
		MessageSize: p.MessageSize, ResultSize: p.ResultSize,
		Sampling: p.Sampling.String(), Elicitation: p.Elicitation.String(), Roots: p.Roots.String(),
	}
	if p.Listed {
		v.Tools = list(p.Tools)
	}
	if p.CallTimeout > 0 {
		v.CallTimeout = p.CallTimeout.String()
	}
	return v
}

func guardRows(v *guardView) [][]string {
	if v == nil {
		return nil
	}
	tools := "every tool that the server has"
	if v.Tools != nil {
		tools = "none"
		if len(v.Tools) > 0 {
			tools = strings.Join(v.Tools, " ")
		}
	}
	rows := [][]string{
		{"guard", "stays", "as the server's parent, between it and the host: reads each message"},
		{"tools", tools},
		{"pins", v.Pins, "definitions may change"},
	}
	for _, r := range [...]struct {
		name  string
		value int
		size  bool
	}{
		{"calls per minute", v.CallsPerMinute, false},
		{"concurrent calls", v.ConcurrentCalls, false},
		{"message size", v.MessageSize, true},
		{"result size", v.ResultSize, true},
	} {
		switch {
		case r.value == 0:
		case r.size:
			rows = append(rows, []string{r.name, bytesText(uint64(r.value))}) //nolint:gosec // a limit, checked
		default:
			rows = append(rows, []string{r.name, strconv.Itoa(r.value)})
		}
	}
	if v.CallTimeout != "" {
		rows = append(rows, []string{"call timeout", v.CallTimeout})
	}
	return append(rows,
		[]string{"sampling", v.Sampling, "whether the server may ask the host's model"},
		[]string{"elicitation", v.Elicitation, "whether it may ask the person"},
		[]string{"roots", v.Roots, "whether it may ask for the host's roots"})
}
