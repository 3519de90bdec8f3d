/* A client of the test network for any C library. Each argument is one thing to ask for;
 * each answer is one line of JSON: {ask, ok, text, code}. */
#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>
#include <arpa/inet.h>

static char text[65536];
static char code[64];

static void fail_errno(void)
{
	switch (errno) {
	case EACCES: strcpy(code, "EACCES"); break;
	case EPERM: strcpy(code, "EPERM"); break;
	case ECONNRESET: strcpy(code, "ECONNRESET"); break;
	case ECONNREFUSED: strcpy(code, "ECONNREFUSED"); break;
	case EAFNOSUPPORT: strcpy(code, "EAFNOSUPPORT"); break;
	case EAGAIN: strcpy(code, "SILENT"); break;
	default: snprintf(code, sizeof code, "errno %d", errno);
	}
}

static struct addrinfo *find(const char *host, const char *port, int type)
{
	struct addrinfo hints = {.ai_socktype = type, .ai_flags = AI_ADDRCONFIG}, *found;
	int status = getaddrinfo(host, port, &hints, &found);
	if (status == 0)
		return found;
	snprintf(code, sizeof code, "EAI %d", status);
	return NULL;
}

static int lookup(const char *name)
{
	struct addrinfo *found = find(name, NULL, SOCK_STREAM);
	if (!found)
		return 0;
	for (struct addrinfo *a = found; a; a = a->ai_next) {
		char part[INET6_ADDRSTRLEN];
		const void *raw = a->ai_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)a->ai_addr)->sin6_addr
							   : (void *)&((struct sockaddr_in *)a->ai_addr)->sin_addr;
		inet_ntop(a->ai_family, raw, part, sizeof part);
		if (a != found)
			strcat(text, " ");
		strcat(text, part);
	}
	freeaddrinfo(found);
	return 1;
}

/* Opens a socket and connects it to the first address of a host that takes it. */
static int reach(const char *host, const char *port, int type)
{
	struct addrinfo *found = find(host, port, type);
	if (!found)
		return -1;
	int fd = -1;
	for (struct addrinfo *a = found; a; a = a->ai_next) {
		struct timeval patience = {.tv_sec = 20};
		fd = socket(a->ai_family, type, 0);
		if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
		    !setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) &&
		    !connect(fd, a->ai_addr, a->ai_addrlen))
			break;
		fail_errno();
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

static int exchange(int fd, const char *request)
{
	if (fd < 0)
		return 0;
	size_t size = strlen(request), have = 0;
	if (write(fd, request, size) != (ssize_t)size) {
		fail_errno();
		close(fd);
		return 0;
	}
	for (;;) {
		ssize_t n = read(fd, text + have, sizeof text - 1 - have);
		if (n < 0) {
			fail_errno();
			close(fd);
			return 0;
		}
		have += n;
		text[have] = 0;
		/* An echo is whole when it is as long as what was sent; a page ends with the stream. */
		if (n == 0 || (have == size && !strcmp(text, request)))
			break;
	}
	close(fd);
	return 1;
}

/* The page at http://HOST[:PORT]/, from the address of another host when one is given. */
static int get(char *url, const char *from)
{
	char host[256], port[16] = "80", request[1024], *rest = url + strlen("http://"), *path = strchr(rest, '/');
	snprintf(host, sizeof host, "%.*s", (int)(path - rest), rest);
	snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path, host);
	char *colon = strrchr(host, ':'), *name = host;
	if (*host == '[') {
		char *end = strchr(host, ']');
		colon = end[1] == ':' ? end + 1 : NULL;
		*end = 0;
		name++;
	}
	if (colon) {
		snprintf(port, sizeof port, "%s", colon + 1);
		*colon = 0;
	}
	return exchange(reach(from ? from : name, port, SOCK_STREAM), request);
}

/* An answer to an unconnected datagram. */
static int datagram(const char *host, const char *port)
{
	struct addrinfo *found = find(host, port, SOCK_DGRAM);
	if (!found)
		return 0;
	struct timeval patience = {.tv_sec = 20};
	int fd = socket(found->ai_family, SOCK_DGRAM, 0);
	ssize_t n = -1;
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) &&
	    sendto(fd, "ping", 4, 0, found->ai_addr, found->ai_addrlen) == 4)
		n = recv(fd, text, sizeof text - 1, 0);
	if (n < 0)
		fail_errno();
	else
		text[n] = 0;
	if (fd >= 0)
		close(fd);
	freeaddrinfo(found);
	return n >= 0;
}

static void quote(const char *s)
{
	putchar('"');
	for (; *s; s++) {
		if (*s == '"' || *s == '\\' || (unsigned char)*s < ' ')
			printf("\\u%04x", (unsigned char)*s);
		else
			putchar(*s);
	}
	putchar('"');
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char ask[1024], *words[3] = {0}, *save = NULL;
		snprintf(ask, sizeof ask, "%s", argv[i]);
		for (int w = 0; w < 3; w++)
			words[w] = strtok_r(w ? NULL : ask, " ", &save);
		text[0] = code[0] = 0;
		int ok = 0;
		if (!strcmp(words[0], "lookup"))
			ok = lookup(words[1]);
		else if (!strcmp(words[0], "get"))
			ok = get(words[1], NULL);
		else if (!strcmp(words[0], "via"))
			ok = get(words[1], words[2]);
		else if (!strcmp(words[0], "tcp"))
			ok = exchange(reach(words[1], words[2], SOCK_STREAM), "ping");
		else if (!strcmp(words[0], "connected"))
			ok = exchange(reach(words[1], words[2], SOCK_DGRAM), "ping");
		else if (!strcmp(words[0], "udp"))
			ok = datagram(words[1], words[2]);
		else
			return 2;
		printf("{\"ask\":");
		quote(argv[i]);
		printf(",\"ok\":%s,\"text\":", ok ? "true" : "false");
		quote(text);
		printf(",\"code\":");
		quote(code);
		printf("}\n");
		fflush(stdout);
	}
	return 0;
}
