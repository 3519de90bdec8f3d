// Package nettest is an Internet of its own for tests of egress: addresses that are public
// for every program that looks at them, names, certificates and servers, all inside
// namespaces that the test process makes for itself. Nothing leaves the machine.
//
//	func TestMain(m *testing.M) { nettest.Main(m) }
//
//	func TestForeignName(t *testing.T) {
//		n := nettest.Get(t)
//		mark := n.Mark()
//		// … run a client …
//		n.Untouched(t, mark, nettest.Private, nettest.Metadata)
//	}
//
// Every server counts what reached it: connections accepted, server names of TLS hellos,
// requests, datagrams; the name server keeps each query. So a test does not ask whether a
// client failed, but whether anything arrived.
//
// It needs no privilege where the kernel lets ordinary users make user namespaces. Root
// makes the namespaces without one and stays root in them.
//
// Servers run on a machine of their own, a second network namespace behind a cable of two
// virtual interfaces: an address of the machine that a client runs on is another matter than
// one of somebody else ([Own]).
//
// What it does not have: routers, several hops, packet filters.
package nettest
