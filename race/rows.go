package race

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"stockade/examples/stock"
)

// Kind says what a row's leak is.
type Kind uint8

const (
	// Content rows leak file contents, names, or changes outside.
	Content Kind = iota
	// Metadata rows show sizes, times and modes; counted apart, not promised.
	Metadata
)

// Timing says where in a burst's answering time swaps are placed.
type Timing uint8

const (
	// Anywhere spreads the swaps over the burst.
	Anywhere Timing = iota
	// Late places them in the second half, where a write ends: after the rename, before
	// the mode is restored.
	Late
)

// Row is one way to use one tool while the name is being swapped.
type Row struct {
	Name   string // the tool, and after a colon what is special
	Tool   string
	Kind   Kind
	Timing Timing
	// Args are the arguments of the i-th call of a burst.
	Args func(s *Stage, server stock.Server, i int) map[string]any
	// Served checks, while nothing is swapped, that the i-th call did its work in the
	// real root.
	Served func(s *Stage, i int, answer string) error
}

// Rows are all the rows. A server runs those whose tool it has.
var Rows = []Row{
	{Name: "read_file", Tool: "read_file", Args: pathOf(nil), Served: showsText(insideText)},
	{Name: "read_text_file", Tool: "read_text_file", Args: pathOf(nil), Served: showsText(insideText)},
	{Name: "read_text_file:head", Tool: "read_text_file", Args: pathOf(map[string]any{"head": 1}), Served: showsText("an inside file")},
	{Name: "read_text_file:tail", Tool: "read_text_file", Args: pathOf(map[string]any{"tail": 2}), Served: showsText(sharedLine)},
	// The media type is binary content in base64, which Text does not hold.
	{Name: "read_media_file", Tool: "read_media_file", Args: pathOf(nil), Served: showsText("")},
	{Name: "read_multiple_files", Tool: "read_multiple_files", Args: severalPaths, Served: showsText(insideText)},
	{Name: "list_directory", Tool: "list_directory", Args: folderArgs, Served: showsText("inside-name")},
	{Name: "list_directory_with_sizes", Tool: "list_directory_with_sizes", Args: folderArgs, Served: showsText("inside-name")},
	{Name: "directory_tree", Tool: "directory_tree", Args: folderArgs, Served: showsText("inside-name")},
	{Name: "search_files", Tool: "search_files", Args: searchArgs, Served: showsText("inside-name")},
	{Name: "edit_file:dry", Tool: "edit_file", Args: editArgs(preview), Served: showsText(editedLine)},
	{Name: "edit_file", Tool: "edit_file", Args: editArgs(apply), Served: edited},
	{Name: "write_file", Tool: "write_file", Args: writeArgs("new-"), Served: written("new-")},
	{Name: "write_file:over", Tool: "write_file", Args: writeArgs(""), Served: written("")},
	{Name: "write_file:mode", Tool: "write_file", Timing: Late, Args: writeArgs(""), Served: written("")},
	{Name: "move_file", Tool: "move_file", Args: moveOutArgs, Served: movedOut},
	{Name: "move_file:dst", Tool: "move_file", Args: moveInArgs, Served: movedIn},
	{Name: "create_directory", Tool: "create_directory", Args: makeArgs, Served: made},
	{Name: "get_file_info", Tool: "get_file_info", Kind: Metadata, Args: pathOf(nil), Served: showsText("size")},
	{Name: "list_directory_with_sizes:stat", Tool: "list_directory_with_sizes", Kind: Metadata, Timing: Late, Args: folderArgs, Served: showsText("inside-name")},
}

type argsFunc = func(s *Stage, server stock.Server, i int) map[string]any

// pathOf asks for the i-th file, with further arguments.
func pathOf(more map[string]any) argsFunc {
	return func(s *Stage, _ stock.Server, i int) map[string]any {
		args := map[string]any{"path": s.Used(fileName(i))}
		maps.Copy(args, more)
		return args
	}
}

// folderArgs ask for the swapped folder itself.
func folderArgs(s *Stage, _ stock.Server, _ int) map[string]any {
	return map[string]any{"path": s.Used("")}
}

func severalPaths(s *Stage, _ stock.Server, i int) map[string]any {
	return map[string]any{"paths": []string{s.Used(fileName(i)), s.Used(fileName(i + 1))}}
}

func searchArgs(s *Stage, server stock.Server, _ int) map[string]any {
	pattern := "-name"
	if server.Search == stock.SearchGlob {
		pattern = "*-name"
	}
	return map[string]any{"path": s.Used(""), "pattern": pattern}
}

// edit says what edit_file is to do with its edits.
type edit uint8

const (
	apply   edit = iota
	preview      // show the difference, change nothing
)

func editArgs(what edit) argsFunc {
	return func(s *Stage, _ stock.Server, i int) map[string]any {
		return map[string]any{
			"path":   s.Used(fileName(i)),
			"edits":  []map[string]any{{"oldText": sharedLine, "newText": editedLine}},
			"dryRun": what == preview,
		}
	}
}

func writeArgs(prefix string) argsFunc {
	return func(s *Stage, _ stock.Server, i int) map[string]any {
		return map[string]any{"path": s.Used(prefix + fileName(i)), "content": editedLine}
	}
}

func moveOutArgs(s *Stage, _ stock.Server, i int) map[string]any {
	return map[string]any{
		"source":      s.Used(fileName(i)),
		"destination": filepath.Join(s.Root(), "out", fileName(i)),
	}
}

func moveInArgs(s *Stage, _ stock.Server, i int) map[string]any {
	return map[string]any{
		"source":      filepath.Join(s.Root(), "src", "src-"+fileName(i)),
		"destination": s.Used("moved-" + fileName(i)),
	}
}

func makeArgs(s *Stage, _ stock.Server, i int) map[string]any {
	return map[string]any{"path": s.Used(fmt.Sprintf("made-%02d", i%files))}
}

type servedFunc = func(s *Stage, i int, answer string) error

// showsText wants a text in the answer.
func showsText(want string) servedFunc {
	return func(_ *Stage, _ int, answer string) error {
		if !strings.Contains(answer, want) {
			return errors.New("the answer lacks the inside text")
		}
		return nil
	}
}

// holds wants a file of the real folder inside to hold a text.
func holds(folder *os.Root, name, want string) error {
	got, err := folder.ReadFile(name)
	if err != nil {
		return fmt.Errorf("looking for the call's work: %w", err)
	}
	if !strings.Contains(string(got), want) {
		return fmt.Errorf("%q was not changed", name)
	}
	return nil
}

func edited(s *Stage, i int, _ string) error { return holds(s.inside, fileName(i), editedLine) }

func written(prefix string) servedFunc {
	return func(s *Stage, i int, _ string) error {
		return holds(s.inside, prefix+fileName(i), editedLine)
	}
}

func movedOut(s *Stage, i int, _ string) error {
	return holds(s.root, filepath.Join("out", fileName(i)), insideText)
}

func movedIn(s *Stage, i int, _ string) error {
	return holds(s.inside, "moved-"+fileName(i), insideText)
}

func made(s *Stage, i int, _ string) error {
	info, err := s.inside.Stat(fmt.Sprintf("made-%02d", i%files))
	if err != nil {
		return fmt.Errorf("looking for the call's work: %w", err)
	}
	if !info.IsDir() {
		return errors.New("the call made something else than a folder")
	}
	return nil
}
