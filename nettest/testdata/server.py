"""A server that does what its requests say, as one with the faults of published reports.

It listens on the ports of its first argument and answers HTTP requests by their headers:

    X-Api-Base  URL   the page there, wherever it leads
    X-Child     URL   the same, fetched by another program
    X-Resolve   NAME  its addresses
    X-Listen    PORT  listens there, too
    X-Datagram  HOST:PORT  what a datagram there brings

A failure is status 502 with the error's name. It ends with its standard input.
"""

import errno
import http.server
import os
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request

PATIENCE = 20
TRUST = ssl.create_default_context(cafile=os.environ.get("SSL_CERT_FILE"))


def api_base(url):
    with urllib.request.urlopen(url, timeout=PATIENCE, context=TRUST) as response:
        return response.read()


def child(url):
    words = ["/usr/bin/curl", "-sS", "-L", "--max-time", "20", "--cacert", os.environ["SSL_CERT_FILE"], url]
    done = subprocess.run(words, capture_output=True)
    if done.returncode:
        raise OSError(f"curl {done.returncode}")
    return done.stdout


def resolve(name):
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    return " ".join(entry[4][0] for entry in found).encode()


def listen(port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(("0.0.0.0", int(port)))
        sock.listen(1)
        return b"listening"


def datagram(where):
    host, port = where.rsplit(":", 1)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(PATIENCE)
        sock.sendto(b"ping", (host, int(port)))
        return sock.recv(64)


ACTIONS = {"X-Api-Base": api_base, "X-Child": child, "X-Resolve": resolve, "X-Listen": listen, "X-Datagram": datagram}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, text = 200, b"hello"
        try:
            for name, action in ACTIONS.items():
                if name in self.headers:
                    text = action(self.headers[name])
        except Exception as failure:
            reason = getattr(failure, "reason", failure)
            status, text = 502, f"{type(reason).__name__} {errno.errorcode.get(getattr(reason, 'errno', None), reason)}".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def server_bind(self):
        # http.server asks for the machine's name here, which may not resolve.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "server", self.server_address[1]


for port in sys.argv[1].split(","):
    threading.Thread(target=Server(("0.0.0.0", int(port)), Handler).serve_forever, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
