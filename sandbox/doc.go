// Package sandbox is what happens to the process: a [Plan] says what a server may touch,
// [Open] finds everything it names, [Enter] puts the calling thread into the jail, layer
// by layer, and [Exec] starts the server in place.
//
//	opened, err := sandbox.Open(plan)     // no effects, every error names its grant
//	report, err := sandbox.Enter(opened)  // private folders, limits, capabilities, Landlock, seccomp
//	err = sandbox.Exec(opened)            // does not come back
//
// It establishes that the server can open, execute, create and remove only what the plan
// grants, that it has no capability, no inherited descriptor, no foreign environment, and
// that its system calls pass the plan's filter. A layer that the plan needs and the kernel
// lacks is an error before the server starts, unless the plan names it in Missing.
//
// It does not hide what exists outside (stat, readlink and access are not covered by
// Landlock), it does not bound CPU time, and it does not protect against kernel faults.
package sandbox
