"""The peer's journal, run by its Python: `journal.py HOME COUNT NAME` writes through its memory tool."""

import json
import sys
import time
from importlib import import_module


def main() -> None:
    _, count, name = sys.argv[1:]
    memory = import_module("tools.memory_tool")
    store = memory.load_on_disk_store()
    texts = [f"{name} noted that item {number} is done." for number in range(int(count))]
    memory.memory_tool("add", "memory", f"{name} begins.", store=store)  # does not count
    print("ready", flush=True)
    sys.stdin.readline()
    begun, used = time.perf_counter(), time.process_time()
    answers = [memory.memory_tool("add", "memory", text, store=store) for text in texts]
    wall, cpu = time.perf_counter() - begun, time.process_time() - used
    told = zip(texts, map(json.loads, answers), strict=True)
    taken = [text for text, answer in told if answer.get("success")]
    print(json.dumps({"wall": wall, "cpu": cpu, "acknowledged": taken}))


if __name__ == "__main__":
    main()
