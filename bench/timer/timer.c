/*
 * Times commands from vfork to exit, interleaved.
 *
 *   timer ROUNDS :: NAME PROGRAM [ARG]... [:: NAME PROGRAM [ARG]...]...
 *
 * Every round starts each command once, in a new random order, with all three standard
 * streams on the null device. Two rounds of warm-up are dropped. Prints median, minimum
 * and 90th percentile in milliseconds, and what the median adds to that of the first
 * command. A command that does not exit with 0 ends the run: its time would mean nothing.
 *
 * In C and small on purpose: the timer's own weight is part of every figure.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most = 16, warmup = 2 };

struct command {
	char *name;
	char **argv;
	double *times; /* milliseconds */
};

static int report; /* where error messages went before the streams were replaced */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static double once(const struct command *c)
{
	int status;
	double start = now();
	pid_t pid = vfork();

	if (pid < 0) {
		perror("timer: vfork");
		exit(1);
	}
	if (pid == 0) {
		execv(c->argv[0], c->argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			exit(1);
	double took = now() - start;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		dprintf(report, "timer: %s ended with status %#x\n", c->name, status);
		exit(1);
	}
	return took;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct command commands[most];
	int count = 0, rounds = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 2; i + 2 < argc && count < most; i++)
		if (strcmp(argv[i], "::") == 0) {
			argv[i] = NULL; /* ends the argument vector before */
			commands[count].name = argv[i + 1];
			commands[count].argv = argv + i + 2;
			commands[count++].times = calloc(rounds > 0 ? rounds : 1, sizeof(double));
		}
	if (rounds <= 0 || count == 0) {
		fprintf(stderr, "usage: timer ROUNDS :: NAME PROGRAM [ARG]... [:: ...]\n");
		return 2;
	}

	/* The commands get the null device; the report goes to where 1 and 2 were. */
	int out = fcntl(1, F_DUPFD_CLOEXEC, 10), null = open("/dev/null", O_RDWR);
	report = fcntl(2, F_DUPFD_CLOEXEC, 10);
	if (out < 0 || report < 0 || null < 0) {
		perror("timer: preparing the streams");
		return 1;
	}
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);

	srand(getpid());
	for (int round = -warmup; round < rounds; round++) {
		int order[most];
		for (int i = 0; i < count; i++) {
			int j = rand() % (i + 1);
			order[i] = order[j];
			order[j] = i;
		}
		for (int i = 0; i < count; i++) {
			double took = once(&commands[order[i]]);
			if (round >= 0)
				commands[order[i]].times[round] = took;
		}
	}
	dprintf(out, "%-28s %8s %8s %8s %8s\n", "ms", "median", "min", "p90", "added");
	double base = 0;
	for (int i = 0; i < count; i++) {
		double *t = commands[i].times;
		qsort(t, rounds, sizeof(double), by_size);
		if (i == 0)
			base = t[rounds / 2];
		dprintf(out, "%-28s %8.2f %8.2f %8.2f %8.2f\n", commands[i].name, t[rounds / 2], t[0],
			t[rounds * 9 / 10], t[rounds / 2] - base);
	}
	return 0;
}
