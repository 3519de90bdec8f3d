"""Keeps the network busy: threads that connect, send and resolve without end.

Its arguments are: a host with a relayed port, a host and a port for plain connections. It says
"loaded" when its threads have done their parts ten times each, and goes on.
"""

import os
import socket
import ssl
import sys
import threading

TRUST = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))
relayed, host, port = sys.argv[1:]
rounds = threading.Semaphore(0)
PART = 10


def relay():
    with socket.create_connection((relayed, 443), timeout=20) as plain, TRUST.wrap_socket(plain, server_hostname=relayed) as conn:
        conn.sendall(f"GET /bulk?n=1000000 HTTP/1.1\r\nHost: {relayed}\r\nConnection: close\r\n\r\n".encode())
        while conn.recv(65536):
            pass


def direct():
    with socket.create_connection((host, int(port)), timeout=20) as conn:
        conn.sendall(b"ping")
        conn.recv(4)


def lookup():
    socket.getaddrinfo(relayed, None)


def forever(action):
    while True:
        try:
            action()
            rounds.release()
        except OSError:
            pass  # the network has gone, which is what the test is about


threads = [threading.Thread(target=forever, args=(action,), daemon=True) for action in [relay, direct, lookup] * 8]
for thread in threads:
    thread.start()
for _ in range(PART * len(threads)):
    rounds.acquire()
print("loaded", flush=True)
sys.stdin.read()
threading.Event().wait()
