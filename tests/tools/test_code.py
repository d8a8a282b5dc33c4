"""execute_code: Python as in a notebook, in a process of its own."""

import os
from pathlib import Path

import pytest

from hone.core.tool import ToolKind
from tests.tools.shells import Session, play, session

SHOWN = [
    ("1 + 1", "2\n"),
    ("print('a')\n'b'", "a\n'b'\n"),
    ("x = 3", ""),
    ("None", ""),
    ("", ""),
    ("def f():\n    return 'é'\nf()", "'é'\n"),
    ("if True:\n    5", ""),
    ("# only a comment", ""),
    ("from dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\nA(1)", "A(x=1)\n"),
    ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))).__name__", "'A'\n"),
    ("__name__", "'__main__'\n"),
    ("import sys; print(1, file=sys.stderr); print(2); 3", "1\n2\n3\n"),
    ("import nearby; nearby.value", "42\n"),
    ("input()", "EOFError"),
    ("f'{chr(0x1F600)}'", "'😀'\n"),
]


@pytest.mark.parametrize(("code", "shown"), SHOWN)
def test_what_is_printed_and_what_the_last_line_is_worth_are_shown(
    tmp_path: Path, code: str, shown: str
) -> None:
    (tmp_path / "nearby.py").write_text("value = 42")

    async def script(shell: Session) -> None:
        outcome = await shell.call("execute_code", code=code)
        assert shown in outcome.text if shown.isalpha() else outcome.text.startswith(f"{shown}[exit code 0; ")

    play(session(tmp_path), script)


def test_an_error_shows_the_code_and_nothing_of_ours(tmp_path: Path) -> None:
    async def script(shell: Session) -> None:
        outcome = await shell.call(
            "execute_code", code="def f(x):\n    return 1 / x\n\nprint('so far')\nf(0)"
        )
        assert outcome.failed
        lines = outcome.text.splitlines()
        assert lines[:3] == [
            "so far",
            "Traceback (most recent call last):",
            '  File "<code>", line 5, in <module>',
        ]
        assert "    return 1 / x" in lines
        assert "ZeroDivisionError: division by zero" in lines
        assert "<string>" not in outcome.text
        wrong = await shell.call("execute_code", code="x = = 1")
        assert wrong.failed
        assert wrong.text.splitlines()[-4].strip() == "x = = 1"
        assert "ast.py" not in wrong.text
        assert "[exit code 4; " in (await shell.call("execute_code", code="raise SystemExit(4)")).text
        deep = await shell.call("execute_code", code="(" * 5_000 + ")" * 5_000)
        assert deep.failed

    play(session(tmp_path), script)


def test_nothing_lasts_from_one_call_to_the_next_but_files(tmp_path: Path) -> None:
    async def script(shell: Session) -> None:
        await shell.call(
            "execute_code", code="x = 1; open('kept', 'w').write('here'); import os; os.chdir('/')"
        )
        outcome = await shell.call("execute_code", code="print(open('kept').read())\nx")
        assert outcome.text.startswith("here\n")
        assert "NameError" in outcome.text

    play(session(tmp_path), script)


def test_code_may_be_long_and_runs_alone(tmp_path: Path) -> None:
    long = "x = '''" + "y" * 500_000 + "'''\nlen(x)"

    async def script(shell: Session) -> None:
        assert (await shell.call("execute_code", code=long)).text.startswith("500000\n")
        pid = await shell.call("execute_code", code="import os; os.getpid()")
        assert int(pid.text.splitlines()[0]) != os.getpid()
        code = {tool.spec.name: tool for tool in shell.shell.tools}["execute_code"]
        assert code.spec.kind is ToolKind.CODE

    play(session(tmp_path), script)


def test_hones_own_environment_is_not_the_codes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary")
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "start.py"))

    async def script(shell: Session) -> None:
        outcome = await shell.call("execute_code", code="import os; dict(os.environ)")
        assert "canary" not in outcome.text
        assert "PYTHON" not in outcome.text

    play(session(tmp_path), script)
