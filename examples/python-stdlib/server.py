#!/usr/bin/env python3
"""A small MCP server on Python's standard library: it counts words in files.

Usage: server.py FOLDER

Tools:
    count_words {"path": PATH}   words in a file; PATH is taken as it comes
    reach {"host": H, "port": P}  whether a TCP connection can be made

Neither tool checks its argument. That is the point: the jail does.
"""

import json
import os
import socket
import sys

TOOLS = [
    {
        "name": "count_words",
        "description": "Count the words of a text file.",
        "inputSchema": {
            "type": "object",
            "properties": {"path": {"type": "string"}},
            "required": ["path"],
        },
    },
    {
        "name": "reach",
        "description": "Try to open a TCP connection.",
        "inputSchema": {
            "type": "object",
            "properties": {"host": {"type": "string"}, "port": {"type": "integer"}},
            "required": ["host", "port"],
        },
    },
]


def count_words(folder, path):
    with open(os.path.join(folder, path), encoding="utf-8") as file:
        return str(len(file.read().split()))


def reach(host, port):
    with socket.create_connection((host, port), timeout=5):
        return "connected"


def call(folder, name, arguments):
    """Return the result of one tools/call request."""
    try:
        if name == "count_words":
            text, failed = count_words(folder, arguments["path"]), False
        elif name == "reach":
            text, failed = reach(arguments["host"], arguments["port"]), False
        else:
            text, failed = f"no tool called {name}", True
    except OSError as error:
        text, failed = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def answer(folder, request):
    """Return the result for a request, or None for an unknown method."""
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "words", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(folder, params["name"], params.get("arguments", {}))
    if method == "ping":
        return {}
    return None


def main():
    folder = sys.argv[1]
    for line in sys.stdin:
        request = json.loads(line)
        if "id" not in request:
            continue
        result = answer(folder, request)
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        if result is None:
            reply["error"] = {"code": -32601, "message": "unknown method"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
