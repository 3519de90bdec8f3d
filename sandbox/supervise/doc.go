// Package supervise answers the calls of a jailed server that a filter cannot judge: where a
// socket connects, where a datagram goes, which port is listened on.
//
// The kernel stops such a call and tells the supervisor (seccomp_unotify(2)). The supervisor
// copies the arguments, takes a copy of the server's socket (pidfd_getfd(2)), decides on its
// own copy of the address, makes the call itself and gives the server what it returned:
//
//	started, err := sandbox.Start(opened, sandbox.Parent{Reach: supervise.Reach})
//	err = supervise.Serve(supervise.Config{Listener: started.Listener, Egress: decider, …})
//
// It promises:
//
//   - No call that it decides on is ever let go on. What the server changes in its memory or
//     its descriptors while a call waits changes nothing.
//   - A call that it only observes ([Observation]) goes on exactly when the server's filter
//     allows it without observation, and is refused as it would be: registers decide, which
//     the server cannot change while a call waits.
//   - What cannot be read, understood or decided is refused.
//   - Calls behave as without a supervisor: errors, blocking, time-outs, signals and restarts
//     are the kernel's. What differs is listed below.
//   - Memory and descriptors are bounded. What is beyond waits in the kernel.
//   - When the supervisor ends, all these calls fail with ENOSYS.
//
// It does not protect against what the egress rules allow, and it makes the calls with its
// own credentials: a supervisor should hold no capability that the server must not use.
//
// What a server can notice: a peer on a Unix socket sees the supervisor's process number
// (SO_PEERCRED, SCM_CREDENTIALS). A UDP socket that is connected to a refused address gets
// the source address that it would have (resolvers sort addresses by it, RFC 6724), and
// fails when it sends. Control messages beyond a short list are refused. A socket that asked
// for zero copy copies, by way of ENOBUFS.
package supervise
