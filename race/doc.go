// Package race is an attack, kept as a test: it drives a stock file server while another
// process keeps swapping a folder for a link that points outside the allowed root, and
// counts what gets out.
//
// A file server checks a path and then uses it by name. Between the two the name can come
// to mean something else, so no check inside the server can hold. The harness shows both
// halves: leaks from an unjailed server, none from a jailed one.
//
// Three parties take part: the server, under one user; the swapper, a process of its own
// under another user ([RunSwapper]); and the client, which sends the calls. Server and
// swapper share a group that may write the allowed root. The secret lies in a folder of
// the server's user that nobody else can enter. Without root all are one user, which
// changes who could read the secret, not who the kernel lets through.
//
// What counts as a leak is in judge.go. File attributes (stat) are counted apart, as
// metadata: Landlock has no right for them and stockade does not promise them.
//
// A run that proves nothing is an error that is [ErrInconclusive]: the server broke,
// ordinary calls failed, nothing reached the real root, or the kernel never refused.
package race
