"""A server that does what a file says, well or badly: `python double.py STATE`. It speaks the handshake era.

It shares no code with Hone. STATE is JSON: {"tools": [...], ...}; it is read anew for every request.
"""

import json
import os
import subprocess
import sys
from typing import Any

STATE = sys.argv[1]


def load() -> Any:
    with open(STATE) as file:
        return json.load(file)


def store(state: Any) -> None:
    with open(STATE, "w") as file:
        json.dump(state, file)


def send(message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def say(text: str) -> Any:
    return {"content": [{"type": "text", "text": text}], "isError": False}


def read() -> Any:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)


def ask(params: Any) -> Any:
    """Ask the client something, and wait for its answer."""
    send({"id": "ask", "method": "elicitation/create", "params": params})
    while True:
        message = read()
        if message.get("id") == "ask":
            return message


def flood() -> None:
    """Send a message without end, until nobody reads it."""
    while True:
        os.write(1, b"x" * 65_536)


def note(name: str, arguments: Any) -> None:
    with open(STATE + ".calls", "a") as file:
        file.write(json.dumps([name, arguments]) + "\n")


def call(name: str, arguments: Any, token: Any) -> Any:
    state = load()
    note(name, arguments)
    if name == "crash":
        print("the last words of a server", file=sys.stderr, flush=True)
        os._exit(3)
    if name == "hang":
        return None
    if name == "flood":
        flood()
    if name == "noise":
        for _ in range(500):
            print("this is no message", flush=True)
    if name == "ask":
        return say(json.dumps(ask(state["question"]).get("result")))
    if name == "progress":
        for step in (1, 2):
            params = {"progressToken": token, "progress": step, "total": 2, "message": "working"}
            send({"method": "notifications/progress", "params": params})
    if name == "change":
        store({**state, **state["next"]})
        send({"method": "notifications/tools/list_changed"})
    if name == "spawn":
        return say(str(subprocess.Popen(["sleep", "1000"], start_new_session=True).pid))
    if name == "environment":
        return say(json.dumps(dict(os.environ)))
    if name == "write":
        with open(arguments["path"], "w") as file:
            file.write(arguments["text"])
    if name in state.get("answers", {}):
        return state["answers"][name]
    return say(f"{name} got {json.dumps(arguments, sort_keys=True)}")


def answer(method: str, params: Any) -> Any:
    state = load()
    match method:
        case "initialize":
            lists = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
            info = {"name": "double", "version": "1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": lists, "serverInfo": info}
        case "ping":
            return {}
        case "tools/list":
            return {"tools": state["tools"]}
        case "tools/call":
            token = params.get("_meta", {}).get("progressToken")
            return call(params["name"], params.get("arguments", {}), token)
        case "resources/list":
            return {"resources": [{"uri": "test://a", "name": "a"}]}
        case "resources/read":
            return {"contents": [{"uri": params["uri"], "text": "words of a resource"}]}
        case "prompts/list":
            return {"prompts": [{"name": "Greet", "arguments": [{"name": "who", "required": True}]}]}
        case "prompts/get":
            text = {"type": "text", "text": f"Greet {params['arguments']['who']}."}
            return {"messages": [{"role": "user", "content": text}]}
    return None


def main() -> None:
    while True:
        message = read()
        if message.get("method") == "notifications/cancelled":
            note("cancelled", {})
        if "id" not in message or "method" not in message:
            continue
        result = answer(message["method"], message.get("params", {}))
        if result is not None:
            send({"id": message["id"], "result": result})
        elif message["method"] != "tools/call":
            error = {"code": -32601, "message": "unknown method"}
            send({"id": message["id"], "error": error})


if __name__ == "__main__":
    main()
