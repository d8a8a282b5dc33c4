"""Made-up wheels in a folder that stands for the index, and an engine that is none."""

import zipfile
from collections.abc import Mapping
from pathlib import Path

ENGINE = '''
import json, os, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


class CommonParams(SimpleNamespace):
    def __init__(self):
        parts = {name: SimpleNamespace() for name in ("model", "cpuparams", "cpuparams_batch", "sampling")}
        super().__init__(**parts)


class Server:
    """Answers every request with what it was started with and what it was sent."""

    def __init__(self, params):
        if open(params.model.path, "rb").read(7) != b"weights":
            raise RuntimeError("failed to load the model")
        start = {
            "environ": sorted(os.environ),
            "window": params.n_ctx,
            "slots": params.n_parallel,
            "threads": params.cpuparams.n_threads,
            "sid": os.getsid(0),
        }

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                allowed = self.headers["authorization"] == f"Bearer {params.api_keys[0]}"
                self.send_response(200 if allowed else 401)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                sent = {"bytes": len(body), "tools": len(json.loads(body).get("tools", []))}
                delta = {"content": json.dumps(start | sent)}
                self.say({"choices": [{"delta": delta, "finish_reason": "stop"}]})
                tokens = {"prompt_tokens": 9, "prompt_tokens_details": {"cached_tokens": 8}}
                self.say({"choices": [], "usage": tokens})

            def say(self, chunk):
                self.wfile.write(f"data: {json.dumps(chunk)}\\n\\n".encode())

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer((params.hostnames[0], params.port), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def listening_address(self):
        return f"http://127.0.0.1:{self.server.server_port}"
'''
"""As much of the engine's module as Hone uses."""


def wheel(index: Path, name: str, version: str, files: Mapping[str, bytes], needs: str = "") -> Path:
    """A wheel of these files; `needs` is a package it says it depends on."""
    stem = f"{name.replace('-', '_')}-{version}"
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    about += f"Requires-Dist: {needs}\n" if needs else ""
    tags = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    info = {f"{stem}.dist-info/METADATA": about.encode(), f"{stem}.dist-info/WHEEL": tags.encode()}
    whole = {**files, **info}
    record = "".join(f"{each},,\n" for each in (*whole, f"{stem}.dist-info/RECORD"))
    index.mkdir(exist_ok=True)
    path = index / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for each, data in whole.items():
            archive.writestr(each, data)
        archive.writestr(f"{stem}.dist-info/RECORD", record)
    return path


def only(index: Path) -> dict[str, str]:
    """The environment in which pip and uv know this folder and nothing else."""
    index.mkdir(exist_ok=True)
    pip = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_CONFIG_FILE": "/dev/null"}
    uv = {"UV_NO_INDEX": "1", "UV_FIND_LINKS": str(index), "UV_OFFLINE": "1", "UV_NO_CACHE": "1"}
    return {**pip, **uv, "UV_NO_CONFIG": "1"}
