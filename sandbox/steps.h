// The C half of Enter: system calls as data, made one after the other. Go cannot run in a
// child that shares its memory, and what enforces the jail must be made, and read back, in
// the very process that becomes the server.
#ifndef STOCKADE_STEPS_H
#define STOCKADE_STEPS_H

#include <stdint.h>

enum outcome {
	EXACTLY = 0,     // (result & mask) == want
	NOT_NEGATIVE = 1 // result >= 0: a descriptor, a session, a mask
};

// step is one system call and what it has to answer. A buffer that it fills in is compared
// as well.
struct step {
	int64_t number;
	uint64_t args[6];
	int64_t outcome;
	int64_t mask;
	int64_t want;
	const void *found;    // NULL: no buffer
	const void *expected;
	uint64_t length;      // bytes of both
	int64_t result;       // written: the answer, or -errno
};

// run_steps returns the index of the first step that did not answer as wanted, or n.
int64_t run_steps(struct step *steps, int64_t n);

enum alive {
	ALIVE = 1,
	LISTENED = 2 // the filter is on, and its listener is the result of its step
};

// child is a process that shares this one's memory and descriptors and waits to be told
// its steps. All words are shared; go and alive are futexes.
struct child {
	uint64_t mask;        // the signal mask to give the server
	uint64_t core_parent; // process number of the maker

	uint32_t go;          // 0: wait, 1: run, 2: leave
	uint32_t alive;       // ALIVE, then LISTENED; the kernel makes it 0 when the child no
	                      // longer shares memory

	struct step *steps;
	int64_t n;
	int64_t installs;     // index of the step that installs the filter
	const char *file;
	char *const *argv;
	char *const *envp;

	int64_t failed;       // written: index of the failed step, n for execve, -1 for none
	int64_t errno_exec;   // written: errno of execve
};

// make_child returns its process number, or -errno. stack_top is the end of a mapping of
// the caller's that stays until alive is 0.
int64_t make_child(struct child *c, void *stack_top);

// wait_alive returns when the child has executed the server, or has ended.
void wait_alive(struct child *c);

// wait_listened returns 1 when the filter is on, and 0 when the child has ended before.
int wait_listened(struct child *c);

// is_alive says whether the child still shares memory. Until it does no more, all its calls
// are the ones of its steps, and the execve after them.
int is_alive(struct child *c);

// let_go tells the child to run (1) or to leave (2).
void let_go(struct child *c, uint32_t word);

// open_files_limit is RLIMIT_NOFILE as the host set it. The Go runtime raises the soft one
// at its start and puts it back in its own exec only.
void open_files_limit(uint64_t limit[2]);

#endif
