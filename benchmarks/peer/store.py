"""The peer's session store, run by the peer's Python: `store.py FILE DATABASE whole|single|search`.

FILE has the sessions and the queries as JSON; the answer is JSON as well. `single` stores message after
message, which is how its agent does it; `whole` is what it restores exported sessions with.
"""

import json
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any


def single(database: Any, corpus: dict[str, Any]) -> dict[str, Any]:
    begun, used = time.perf_counter(), time.process_time()
    for session in corpus["sessions"]:
        database.create_session(session["id"], "cli", model="bench/model")
        for place, text in enumerate(session["texts"]):
            role = "assistant" if place % 2 else "user"
            database.append_message(session["id"], role, text, timestamp=session["at"] + 60 * place)
    return {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}


def whole(database: Any, corpus: dict[str, Any]) -> dict[str, Any]:
    sessions = [exported(session) for session in corpus["sessions"]]
    begun, used = time.perf_counter(), time.process_time()
    told = database.import_sessions(sessions)
    if told["errors"]:
        raise SystemExit(f"the peer did not take the sessions: {told['errors'][:3]}")
    return {"wall": time.perf_counter() - begun, "cpu": time.process_time() - used}


def exported(session: dict[str, Any]) -> dict[str, Any]:
    messages = [
        {
            "role": "assistant" if place % 2 else "user",
            "content": text,
            "timestamp": session["at"] + 60 * place,
        }
        for place, text in enumerate(session["texts"])
    ]
    return {"id": session["id"], "source": "cli", "started_at": session["at"], "messages": messages}


def search(database: Any, corpus: dict[str, Any]) -> dict[str, Any]:
    """Return the milliseconds of each query as its tool answers it, in wall and processor time.

    A query without results does not count: that answer takes no time.
    """
    session_search = import_module("tools.session_search_tool").session_search
    told: dict[str, Any] = {}
    for kind, queries in corpus["queries"].items():
        session_search(queries[0], db=database, limit=10)  # does not count
        told[kind] = {"wall": [], "cpu": []}
        for query in queries:
            begun, used = time.perf_counter(), time.process_time()
            answer = session_search(query, db=database, limit=10)
            wall, cpu = time.perf_counter() - begun, time.process_time() - used
            if json.loads(answer).get("count"):
                told[kind]["wall"].append(wall * 1000)
                told[kind]["cpu"].append(cpu * 1000)
    return told


def main() -> None:
    file, place, work = sys.argv[1:]
    corpus = json.loads(Path(file).read_text(encoding="utf-8"))
    database = import_module("hermes_state").SessionDB(Path(place))
    told = {"single": single, "whole": whole, "search": search}[work](database, corpus)
    database.close()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
