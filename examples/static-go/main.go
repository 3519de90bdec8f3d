// Command static-go is a small MCP server without a C library: it keeps notes as files.
//
//	static-go FOLDER
//
// It joins names to the folder and checks nothing; the jail does. A static program needs
// no loader and no libraries, so its jail grants nothing but the program itself and what
// the profile says.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// noteArgs names a note; text is what to write, or "" to read.
type noteArgs struct {
	Name string `json:"name" jsonschema:"file name of the note"`
	Text string `json:"text,omitempty" jsonschema:"what to write"`
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "static-go:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if len(os.Args) != 2 {
		return fmt.Errorf("starting: need one folder, got %d words", len(os.Args)-1)
	}
	folder := os.Args[1]
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "write_note", Description: "Write a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, args noteArgs) (*mcp.CallToolResult, any, error) {
			if err := os.WriteFile(filepath.Join(folder, args.Name), []byte(args.Text), 0o600); err != nil {
				return nil, nil, fmt.Errorf("writing the note: %w", err)
			}
			return said("written"), nil, nil
		})
	mcp.AddTool(server, &mcp.Tool{Name: "read_note", Description: "Read a note."},
		func(_ context.Context, _ *mcp.CallToolRequest, args noteArgs) (*mcp.CallToolResult, any, error) {
			text, err := os.ReadFile(filepath.Join(folder, args.Name))
			if err != nil {
				return nil, nil, fmt.Errorf("reading the note: %w", err)
			}
			return said(string(text)), nil, nil
		})
	return server.Run(ctx, &mcp.StdioTransport{})
}

func said(text string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}
