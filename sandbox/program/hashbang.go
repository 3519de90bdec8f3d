package program

import (
	"bytes"
	"errors"
)

// hashbangSize is how much of a file the kernel looks at (BINPRM_BUF_SIZE since Linux 5.1).
const hashbangSize = 256

var (
	errNoInterpreter        = errors.New("its `#!` line names no interpreter")
	errInterpreterTruncated = errors.New("its `#!` line is longer than the 255 bytes the kernel reads")
)

// hashbang is the first line of a script.
type hashbang struct {
	interpreter string
	// arguments holds the one optional argument. It is everything after the interpreter,
	// blanks included: the kernel splits no further.
	arguments []string
}

// isHashbang says whether the kernel takes a file with this beginning for a script.
func isHashbang(head []byte) bool { return len(head) >= 2 && head[0] == '#' && head[1] == '!' }

// parseHashbang reads the beginning of a script like load_script in fs/binfmt_script.c
// (Linux 5.1 and later): blanks are spaces and tabs, a NUL ends a word, a line without an
// end counts only if its interpreter is surely complete.
func parseHashbang(head []byte) (hashbang, error) {
	// The kernel pads short files with NULs, and those end words too.
	var buffer [hashbangSize]byte
	copy(buffer[:], head)
	last := hashbangSize - 1

	end := bytes.IndexByte(buffer[:], '\n')
	if end < 0 {
		start := skipBlanks(buffer[:], 2, last)
		if start < 0 {
			return hashbang{}, errNoInterpreter
		}
		if nextTerminator(buffer[:], start, last) < 0 {
			return hashbang{}, errInterpreterTruncated
		}
		end = last
	}
	for end > 2 && isBlank(buffer[end-1]) {
		end--
	}
	buffer[end] = 0

	name := skipBlanks(buffer[:], 2, end)
	if name < 0 || name == end || buffer[name] == 0 {
		return hashbang{}, errNoInterpreter
	}
	separator := nextTerminator(buffer[:], name, end)
	line := hashbang{interpreter: cString(buffer[name:])}
	if separator >= 0 && buffer[separator] != 0 {
		line.interpreter = string(buffer[name:separator])
		if argument := skipBlanks(buffer[:], separator, end); argument >= 0 {
			line.arguments = []string{cString(buffer[argument:])}
		}
	}
	return line, nil
}

func isBlank(b byte) bool { return b == ' ' || b == '\t' }

// skipBlanks is the first place from start to last, both included, without a blank; -1
// when there is none.
func skipBlanks(buffer []byte, start, last int) int {
	for i := start; i <= last; i++ {
		if !isBlank(buffer[i]) {
			return i
		}
	}
	return -1
}

// nextTerminator is the first place from start to last, both included, that ends a word.
func nextTerminator(buffer []byte, start, last int) int {
	for i := start; i <= last; i++ {
		if isBlank(buffer[i]) || buffer[i] == 0 {
			return i
		}
	}
	return -1
}

func cString(b []byte) string {
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b)
}
