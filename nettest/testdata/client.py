"""A client of the test network.

Each argument is one thing to ask for; each answer is one line of JSON:
{ask, ok, text, code}.
"""

import asyncio
import errno
import json
import os
import socket
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request

# A silent peer must not hang the test; nothing that passes waits so long.
PATIENCE = 20
TRUST = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))


def get(url):
    """The page at a URL, redirects followed."""
    with urllib.request.urlopen(url, timeout=PATIENCE, context=TRUST) as response:
        return response.read().decode()


def via(url, host):
    """The page at a URL, from the address of another host."""
    name = urllib.parse.urlsplit(url).hostname
    with socket.create_connection((host, 443), timeout=PATIENCE) as plain:
        with TRUST.wrap_socket(plain, server_hostname=name) as conn:
            conn.sendall(f"GET / HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
            return b"".join(iter(lambda: conn.recv(4096), b"")).decode()


async def converse(url):
    parts = urllib.parse.urlsplit(url)
    secure = TRUST if parts.scheme == "https" else None
    port = parts.port or (443 if secure else 80)
    reader, writer = await asyncio.open_connection(parts.hostname, port, ssl=secure, happy_eyeballs_delay=0.25)
    writer.write(f"GET / HTTP/1.1\r\nHost: {parts.netloc}\r\nConnection: close\r\n\r\n".encode())
    text = await reader.read()
    writer.close()
    return text.decode()


def aio(url):
    """The page at a URL, by asyncio."""
    return asyncio.run(asyncio.wait_for(converse(url), PATIENCE))


def lookup(name):
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return " ".join(entry[4][0] for entry in found)


def tcp(host, port):
    """What comes back for a word sent over TCP."""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as conn:
        conn.sendall(b"ping")
        return conn.recv(64).decode()


def udp(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as conn:
        conn.settimeout(PATIENCE)
        conn.sendto(b"ping", (host, int(port)))
        return conn.recv(64).decode()


def connected(host, port):
    """The same on a connected datagram socket."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as conn:
        conn.settimeout(PATIENCE)
        conn.connect((host, int(port)))
        conn.send(b"ping")
        return conn.recv(64).decode()


def question(name):
    """A query for the addresses of a name, with an id that would carry two bytes of anything."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return b"\x5e\xc7\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00" + labels + b"\x00\x00\x01\x00\x01"


def verdict(reply):
    """The answer's code, and how many records it has."""
    if reply[:2] != b"\x5e\xc7":
        raise ValueError("an answer to another query")
    return f"rcode {reply[3] & 15} answers {int.from_bytes(reply[6:8], 'big')}"


def ask(name, server, way):
    """What a name server says, asked by hand over one kind of socket."""
    if way == "tcp":
        with socket.create_connection((server, 53), timeout=PATIENCE) as conn:
            query = question(name)
            conn.sendall(len(query).to_bytes(2, "big") + query)
            return verdict(conn.recv(4096)[2:])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as conn:
        conn.settimeout(PATIENCE)
        if way == "connected":
            conn.connect((server, 53))
            conn.send(question(name))
        elif way == "sendmsg":
            conn.sendmsg([question(name)], [], 0, (server, 53))
        else:
            conn.sendto(question(name), (server, 53))
        return verdict(conn.recv(4096))


def code_of(err):
    """The errno by name, or the resolver's own code."""
    while isinstance(err, urllib.error.URLError) and isinstance(err.reason, Exception):
        err = err.reason
    if isinstance(err, socket.gaierror):
        return f"EAI {err.errno}"
    if isinstance(err, OSError) and err.errno in errno.errorcode:
        return errno.errorcode[err.errno]
    return type(err).__name__


VERBS = {f.__name__: f for f in (get, via, aio, lookup, tcp, udp, connected, ask)}

for ask in sys.argv[1:]:
    verb, *words = ask.split(" ")
    try:
        answer = {"ask": ask, "ok": True, "text": VERBS[verb](*words), "code": ""}
    except Exception as err:  # every failure is an answer
        answer = {"ask": ask, "ok": False, "text": repr(err), "code": code_of(err)}
    print(json.dumps(answer), flush=True)
