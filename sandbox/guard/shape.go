package guard

import "bytes"

// checkShape bounds nesting and the number of keys before the text is parsed, so that
// parsing takes bounded memory. It relies on nothing: on text that is no JSON it counts
// something else, and the parser refuses that text afterwards.
func checkShape(text []byte) error {
	var members [MaxDepth + 1]int
	var object [MaxDepth + 1]bool
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			end := endOfString(text, i+1)
			if end < 0 {
				return nil
			}
			i = end
		case '{', '[':
			if depth == MaxDepth {
				return refusal("nested deeper than 64 levels")
			}
			depth++
			members[depth], object[depth] = 0, text[i] == '{'
		case '}', ']':
			if depth == 0 {
				return nil
			}
			depth--
		case ',':
			members[depth]++
			if object[depth] && members[depth] >= MaxMembers {
				return refusal("an object has more than 65536 keys")
			}
		}
	}
	return nil
}

// endOfString finds the quote that ends a string whose text begins at from; -1 for none.
func endOfString(text []byte, from int) int {
	for at := from; ; {
		n := bytes.IndexByte(text[at:], '"')
		if n < 0 {
			return -1
		}
		end := at + n
		slashes := 0
		for end-slashes > at && text[end-slashes-1] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return end
		}
		at = end + 1
	}
}
