"""The peer's index of skills, run by the peer's Python: how long it takes, and how many bytes it has."""

import json
import time
from importlib import import_module


def main() -> None:
    build = import_module("agent.prompt_builder").build_skills_system_prompt
    begun, used = time.perf_counter(), time.process_time()
    text = build()
    took, cpu = time.perf_counter() - begun, time.process_time() - used
    print(json.dumps([took * 1000, cpu * 1000, len(text.encode())]))


if __name__ == "__main__":
    main()
