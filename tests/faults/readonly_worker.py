"""A process beside the tests: `python readonly_worker.py`, which gives up the rights of root first.

It reads one JSON list of arguments per line, runs `hone` with them, and writes the exit code and both
outputs as one JSON list.
"""

import io
import json
import os
import sys
from contextlib import redirect_stderr, redirect_stdout

from hone.cli.main import perform
from tests.cli.nobody import give_up_rights


def main() -> None:
    give_up_rights()
    lines = sys.stdin
    for line in lines:
        out, err = io.StringIO(), io.StringIO()
        # What is piped in would be taken for the user's words.
        with open(os.devnull) as sys.stdin, redirect_stdout(out), redirect_stderr(err):
            code = perform(json.loads(line))
        print(json.dumps([code, out.getvalue(), err.getvalue()]), flush=True)


if __name__ == "__main__":
    main()
