// Package hostconfig finds MCP servers in the configuration files of host applications and
// puts the launcher in front of their command lines, or takes it away again. It turns bytes
// into bytes: it reads no file, starts nothing and prints nothing.
//
// A wrapped entry keeps its form. Where a host writes
//
//	"command": "npx", "args": ["-y", "some-server"]
//
// the wrapped file says
//
//	"command": "stockade", "args": ["run", "--", "npx", "-y", "some-server"]
//
// The command's own spelling (quotes, escapes) moves into the list and comes back from it,
// so unwrapping needs nothing but the wrapped file: hosts rewrite their files, and an offset
// or a second file would soon lie. Everything else in the file stays as it was, byte for
// byte. [File.Wrap] proves that before it hands anything out: it reads its own result,
// compares it with the wanted change, and unwraps it again.
//
// Three layouts of the list tell what there was before:
//
//   - more words behind the command: there was a list that held them;
//   - none, and the list begins "[ " and ends "]", right behind the command: there was none;
//   - none, in any other layout: there was an empty list.
//
// No serializer writes the second layout. A host that rewrites its file turns it into the
// third, which leaves an empty list behind: the same server to every host.
//
// Left alone, each with its place and the reason (Server.Refusal): entries that hosts may
// read in more than one way (a key twice, or in another case; a command beside an address),
// and those whose bytes cannot be moved and brought back (YAML anchors, aliases, tags and
// text over several lines).
//
// A host expands its placeholders in the words as it does in the command. Some expand them
// in the words only; a command with such a placeholder started nothing there before.
//
// Not promised: that the host starts what the file says (it may be disabled, unapproved or
// overridden by another file), and that a remote server is held by anything here.
package hostconfig
