// Package seccomp turns a description of what a server may ask of the kernel into a
// filter, and installs that filter on the calling thread.
//
// The filter is data first: [Policy.Filter] is pure and returns the OCI runtime-spec form,
// so that it can be printed, compared and exported. [Build] makes BPF from it, with
// libseccomp for what its own code does not take; [Policy.Program] returns the embedded BPF
// of the policies that built-in profiles use, and builds the others. [Install] and, for a
// supervisor, [Listen] are the one raw seccomp(2) call.
//
// What it establishes: with default options the filter refuses Internet, Unix, packet,
// netlink and vsock sockets, io_uring, namespaces, keyrings, BPF, ptrace and kin, foreign
// ABIs, terminal injection, executable memory files, changes to other processes, and
// changes to file metadata by path.
//
// A supervised filter admits Unix sockets too, and lets the calls wait that connect, send to
// an address or listen; the supervisor (package sandbox/supervise) decides on them.
//
// What it does not: a filter sees numbers, never what a pointer points to. Which file a
// path names is Landlock's business (package sandbox).
package seccomp
