// Command stockade starts a stock MCP server in a jail that the kernel keeps, and then is
// gone: the server runs in its place, under its process number, with its standard streams.
//
// This package holds the command line and nothing else: words and flags, the facts of this
// machine, what is printed, and the exit status. Policy lives in package profiles,
// enforcement in package sandbox.
//
// Rules of output:
//
//   - standard output belongs to the server. Commands that are asked to print use it;
//     everything else goes to standard error;
//   - each line on standard error starts with "stockade: " and one of error, hint, warning,
//     note;
//   - control characters in names are shown as escapes, so that a file name can neither
//     break a line nor steer a terminal;
//   - the value of an environment variable is never printed.
package main
