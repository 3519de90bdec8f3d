//go:build linux

#define _GNU_SOURCE
#include "steps.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

// raw makes a system call without libc: errno belongs to a thread of Go, which shares it
// with the child.
static int64_t raw(int64_t number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
#if defined(__x86_64__)
	int64_t result;
	register uint64_t r10 __asm__("r10") = d;
	register uint64_t r8 __asm__("r8") = e;
	register uint64_t r9 __asm__("r9") = f;
	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register uint64_t x8 __asm__("x8") = (uint64_t)number;
	register uint64_t x0 __asm__("x0") = a;
	register uint64_t x1 __asm__("x1") = b;
	register uint64_t x2 __asm__("x2") = c;
	register uint64_t x3 __asm__("x3") = d;
	register uint64_t x4 __asm__("x4") = e;
	register uint64_t x5 __asm__("x5") = f;
	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return (int64_t)x0;
#else
#error "this architecture is not supported"
#endif
}

static int same(const unsigned char *a, const unsigned char *b, uint64_t length)
{
	for (uint64_t i = 0; i < length; i++)
		if (a[i] != b[i])
			return 0;
	return 1;
}

int64_t run_steps(struct step *steps, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		struct step *s = &steps[i];
		s->result = raw(s->number, s->args[0], s->args[1], s->args[2], s->args[3], s->args[4], s->args[5]);
		if (s->outcome == NOT_NEGATIVE ? s->result < 0 : (s->result & s->mask) != s->want)
			return i;
		if (s->found && !same(s->found, s->expected, s->length))
			return i;
	}
	return n;
}

// default_signals gives every signal that Go handles its default action: a handler would
// run Go's code here. Ignored signals stay ignored, as execve(2) keeps them.
static int64_t default_signals(void)
{
	// struct sigaction of the kernel, not of libc: handler, flags, restorer, mask.
	struct {
		uint64_t handler, flags, restorer, mask;
	} action;
	for (int signal = 1; signal <= 64; signal++) {
		if (signal == SIGKILL || signal == SIGSTOP)
			continue;
		int64_t err = raw(SYS_rt_sigaction, signal, 0, (uint64_t)&action, 8, 0, 0);
		if (err)
			return err;
		if (action.handler == (uint64_t)SIG_DFL || action.handler == (uint64_t)SIG_IGN)
			continue;
		action.handler = (uint64_t)SIG_DFL;
		action.flags = 0;
		err = raw(SYS_rt_sigaction, signal, (uint64_t)&action, 0, 8, 0, 0);
		if (err)
			return err;
	}
	return 0;
}

// child_main is the child, on a stack of its own.
static int child_main(void *arg)
{
	struct child *c = arg;
	uint32_t word;

	// A start that ends here leaves no child behind, and a supervisor that dies later takes
	// the server along.
	if (raw(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0, 0) ||
	    (uint64_t)raw(SYS_getppid, 0, 0, 0, 0, 0, 0) != c->core_parent)
		raw(SYS_exit_group, 125, 0, 0, 0, 0, 0);
	while (!(word = __atomic_load_n(&c->go, __ATOMIC_ACQUIRE)))
		raw(SYS_futex, (uint64_t)&c->go, FUTEX_WAIT, 0, 0, 0, 0);
	if (word != 1)
		raw(SYS_exit_group, 125, 0, 0, 0, 0, 0);

	// The filter may let the very next call wait for an answer, so who answers is told of
	// the listener before that.
	c->failed = run_steps(c->steps, c->installs + 1);
	if (c->failed == c->installs + 1) {
		__atomic_store_n(&c->alive, LISTENED, __ATOMIC_RELEASE);
		raw(SYS_futex, (uint64_t)&c->alive, FUTEX_WAKE, 1, 0, 0, 0);
		c->failed += run_steps(c->steps + c->failed, c->n - c->failed);
	}
	if (c->failed != c->n)
		raw(SYS_exit_group, 125, 0, 0, 0, 0, 0);
	c->errno_exec = default_signals();
	if (!c->errno_exec)
		c->errno_exec = raw(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&c->mask, 0, 8, 0, 0);
	if (!c->errno_exec)
		c->errno_exec = raw(SYS_execve, (uint64_t)c->file, (uint64_t)c->argv, (uint64_t)c->envp, 0, 0, 0);
	raw(SYS_exit_group, 125, 0, 0, 0, 0, 0);
	return 125;
}

int64_t make_child(struct child *c, void *stack_top)
{
	uint64_t all = ~(uint64_t)0;
	int64_t err = raw(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&all, (uint64_t)&c->mask, 8, 0, 0);
	if (err)
		return err;
	c->core_parent = (uint64_t)raw(SYS_getpid, 0, 0, 0, 0, 0, 0);
	c->alive = ALIVE;
	// No CLONE_SIGHAND: the child's actions are its own. CLONE_FILES: what the child opens
	// is in the parent's table too. CLONE_CHILD_CLEARTID: the kernel clears the word when
	// the child stops sharing memory (clone(2), set_tid_address(2)).
	int pid = clone(child_main, stack_top, CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD, c, NULL, NULL, &c->alive);
	int64_t result = pid < 0 ? -errno : pid;
	raw(SYS_rt_sigprocmask, SIG_SETMASK, (uint64_t)&c->mask, 0, 8, 0, 0);
	return result;
}

void let_go(struct child *c, uint32_t word)
{
	__atomic_store_n(&c->go, word, __ATOMIC_RELEASE);
	raw(SYS_futex, (uint64_t)&c->go, FUTEX_WAKE, 1, 0, 0, 0);
}

void wait_alive(struct child *c)
{
	uint32_t alive;
	while ((alive = __atomic_load_n(&c->alive, __ATOMIC_ACQUIRE)))
		raw(SYS_futex, (uint64_t)&c->alive, FUTEX_WAIT, alive, 0, 0, 0);
}

int wait_listened(struct child *c)
{
	uint32_t alive;
	while ((alive = __atomic_load_n(&c->alive, __ATOMIC_ACQUIRE)) == ALIVE)
		raw(SYS_futex, (uint64_t)&c->alive, FUTEX_WAIT, alive, 0, 0, 0);
	return alive == LISTENED;
}

int is_alive(struct child *c)
{
	return __atomic_load_n(&c->alive, __ATOMIC_ACQUIRE) != 0;
}

static uint64_t host_limit[2];

// Before Go's own start, which raises the soft limit.
__attribute__((constructor)) static void note_open_files_limit(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		host_limit[0] = l.rlim_cur;
		host_limit[1] = l.rlim_max;
	}
}

void open_files_limit(uint64_t limit[2])
{
	limit[0] = host_limit[0];
	limit[1] = host_limit[1];
}
