"""The engine process: serve one model on loopback until standard input closes, so that it ends with Hone.

This file is started by its path and imports nothing from Hone. Its first input line says what to serve and
with which key; its first output line is its address.
"""

import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

CACHED_MEGABYTES = 512
"""How many prompts of other conversations to cache besides the active one."""
LONGEST = 1_024
"""The most tokens of an answer if the request names no limit: a small model may never stop."""


def main() -> None:
    order = json.loads(sys.stdin.readline())
    if order["engine"]:
        sys.path.insert(0, order["engine"])
    server = serve(importlib.import_module("xllamacpp"), order)
    print(server.listening_address, flush=True)
    sys.stdin.read()
    os._exit(0)  # an unfinished answer does not keep the process alive


def serve(engine: Any, order: dict[str, Any]) -> Any:
    params = engine.CommonParams()
    params.model.path = order["weights"]
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [order["key"]]
    params.chat_template = Path(__file__).with_name("chatml.jinja").read_text(encoding="utf-8")
    params.n_parallel, params.n_ctx, params.n_predict = 1, order["window"], LONGEST
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = order["threads"]
    params.cache_prompt, params.cache_ram_mib = True, CACHED_MEGABYTES
    params.ui = params.endpoint_slots = params.warmup = False
    params.sampling.temp, params.sampling.top_p = 0.2, 0.9
    params.offline, params.verbosity = True, 1
    return engine.Server(params)


if __name__ == "__main__":
    main()
