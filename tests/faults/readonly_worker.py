"""A process beside the tests: `python readonly_worker.py`, which gives up the rights of root first.

It reads one JSON list of arguments per line, runs `hone` with them, and writes the exit code and both
outputs as one JSON list.
"""

import difflib
import importlib
import io
import json
import os
import pkgutil
import shutil
import sys
import tempfile
import tomllib
from contextlib import redirect_stderr, redirect_stdout

import hone
from hone.cli.main import perform

NOBODY = 65534
READY = (difflib, shutil, tempfile, tomllib)  # what comes later may not be able to read our own code


def main() -> None:
    for module in pkgutil.walk_packages(hone.__path__, "hone."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    lines = sys.stdin
    for line in lines:
        out, err = io.StringIO(), io.StringIO()
        # What is piped in would be taken for the user's words.
        with open(os.devnull) as sys.stdin, redirect_stdout(out), redirect_stderr(err):
            code = perform(json.loads(line))
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
