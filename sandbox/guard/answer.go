package guard

import (
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Codes of the errors that the guard answers with.
const (
	// CodeRefused is the guard's own: a rule refused a message. It lies outside the range
	// that JSON-RPC reserves (-32768 to -32000); data.reason names the rule.
	CodeRefused = -31000

	codeParse         = -32700 // JSON-RPC 2.0, section 5.1
	codeInvalid       = -32600
	codeUnknownMethod = -32601 // also what a host answers that lacks a capability
	codeInvalidParams = -32602 // also what the protocol answers to an unknown tool
)

// failure is an error that somebody gets as an answer.
type failure struct {
	code    int
	message string
	reason  string // of CodeRefused: the key of the profile, or "message"
}

// answer writes the failure as a message; an id of nil is null.
func (f failure) answer(id []byte) []byte {
	if id == nil {
		id = []byte("null")
	}
	out := append([]byte(`{"jsonrpc":"2.0","id":`), id...)
	out = append(out, `,"error":{"code":`...)
	out = strconv.AppendInt(out, int64(f.code), 10)
	out = append(out, `,"message":`...)
	out = appendText(out, f.message)
	if f.reason != "" {
		out = append(out, `,"data":{"reason":`...)
		out = appendText(out, f.reason)
		out = append(out, '}')
	}
	return append(out, "}}\n"...)
}

// cancellation tells the server that nobody waits for an answer any more.
func cancellation(id []byte, reason string) []byte {
	out := append([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`), id...)
	out = append(out, `,"reason":`...)
	out = appendText(out, reason)
	return append(out, "}}\n"...)
}

// failedResult is the result of a tool that failed, as the protocol wants it: the model reads
// it. Since 2026-07-28 each result names its type.
func failedResult(text string, speaks era) []byte {
	out := append([]byte(`{"content":[{"type":"text","text":`), appendText(nil, text)...)
	out = append(out, `}],"isError":true`...)
	if speaks == modern {
		out = append(out, `,"resultType":"complete"`...)
	}
	return append(out, '}')
}

// appendText writes text as JSON; what is no UTF-8 becomes U+FFFD.
func appendText(out []byte, text string) []byte {
	quoted, err := jsontext.AppendQuote(out, text)
	if err != nil {
		return append(out, quoted[len(out):]...)
	}
	return quoted
}
