"""Run the Python code on standard input as a notebook does, and print the value of the last line.

This file runs inside the sandbox; its text is passed to the interpreter. Tracebacks show only the user's
code.
"""

import ast
import linecache
import sys
import traceback
from types import ModuleType

NAME = "<code>"


def run(source: str) -> int:
    module = sys.modules["__main__"] = ModuleType("__main__")
    linecache.cache[NAME] = (len(source), None, source.splitlines(keepends=True), NAME)
    try:
        tree = ast.parse(source, NAME)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, NAME, "exec"), module.__dict__)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), NAME, "eval"), module.__dict__)
            if value is not None:
                print(repr(value))
    except Exception as error:  # noqa: BLE001  anybody's code may raise anything
        _show(error)
        return 1
    return 0


def _show(error: Exception) -> None:
    told = traceback.TracebackException.from_exception(error)
    begun = next(
        (number for number, frame in enumerate(told.stack) if frame.filename == NAME), len(told.stack)
    )
    told.stack = traceback.StackSummary.from_list(told.stack[begun:])
    print("".join(told.format()), end="", file=sys.stderr)


if __name__ == "__main__":
    sys.path.insert(0, "")
    sys.exit(run(sys.stdin.buffer.read().decode("utf-8", "replace")))
