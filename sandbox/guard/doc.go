// Package guard stands between a host and a server that speak MCP over standard input and
// output. It reads every message, holds it against a [Policy], and hands the original bytes
// on.
//
// Contract:
//
//   - Bytes pass unchanged unless a rule changed something. Then only the affected value is
//     cut out or replaced, at its place in the original bytes; nothing is written anew.
//   - What is read is what is sent. A message that two readers could understand differently
//     does not pass: a key twice in one object, a key that differs from one of the protocol
//     in the case of its letters or in characters that cannot be seen, bytes that are no
//     UTF-8, more than [MaxDepth] objects and lists within each other, more than [MaxMembers]
//     keys in one object.
//   - Memory is bounded: one message in each direction, up to Policy.MessageSize, the ids of
//     at most [MaxInFlight] requests, and as many short answers of its own. Nothing is queued
//     beyond that: a side that does not read stops the other side from being read.
//   - A message of any kind ends no session. Whoever waits for an answer gets one.
//
// The protocol's revisions from 2024-11-05 to 2026-07-28 are known. A revision decides on
// two things only: whether several messages may stand in one list (2025-03-26), and how
// a server asks its host (requests of its own, or an answer of the type input_required).
// What the guard does not know passes: methods, keys and capabilities of later revisions.
//
// The package starts nothing and knows no process: it relays between four streams.
package guard
