"""A server that tells how it runs: looking.py --look=FILE.

Its tool answers with what the file holds, or the errno, and with what the kernel says of its
process; it notes the same for each message, in "seen" in its home folder.
"""
import ctypes
import errno
import json
import os
import sys

PR_GET_SECCOMP, PR_GET_NO_NEW_PRIVS = 21, 39  # linux/prctl.h
kernel = ctypes.CDLL(None)


def view(method):
    try:
        with open(sys.argv[1].removeprefix("--look="), encoding="utf-8") as file:
            look = file.read().strip()
    except OSError as error:
        look = errno.errorcode[error.errno]
    return json.dumps({
        "method": method, "look": look,
        "privileges": kernel.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), "filter": kernel.prctl(PR_GET_SECCOMP, 0, 0, 0, 0),
    })


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "looking", "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "look", "description": "Reads the file", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": view(method)}]}
    return {} if method == "ping" else None


for line in sys.stdin:
    message = json.loads(line)
    with open(os.path.join(os.environ["HOME"], "seen"), "a", encoding="utf-8") as seen:
        seen.write(view(message["method"]) + "\n")
    if "id" in message:
        result = answer(message["method"], message.get("params"))
        said = {"error": {"code": -32601, "message": "not known"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **said}), flush=True)
