"""No name, number or text that reaches a process is ever taken for a command."""

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest

from hone.core.value import replace
from hone.sandbox.examining import known_modes
from hone.sandbox.spec import Launch, SandboxSpec
from tests.conftest import Figures, Tier
from tests.sandbox.areas import area
from tests.tools.shells import Given, Session, play, pretended, session

Wrap = Callable[[Sequence[str], SandboxSpec], Launch]

COMMANDS = ["touch {c}", "echo x > {c}", ": > {c}", "id > {c}", "cp fixed {c}", "printf x>{c}", "tee {c}"]
SHAPES = [
    *("; {x} ;", "| {x}", "& {x} &", "&& {x}", "|| {x}", "$({x})", "`{x}`", "\n{x}\n", "\r\n{x}\r\n", "{x}"),
    *("'; {x}; '", '"; {x}; "', "') ; {x} #", '") ; {x} #', "$(({x}))", "<({x})", ">({x})", "$'\\n'{x}"),
    *("-c {x}", "--; {x}", "-- {x}", "--bind", "--dev-bind", "-{x}", "--args 0 {x}", "=$({x})", "a=$({x})"),
    *(
        "~$({x})",
        "*; {x}",
        "[$({x})]",
        "{{{x},}}",
        "!{x}",
        "eval {x}",
        "exec {x}",
        "\\\n{x}",
        "\t;{x}",
        "#\n{x}",
    ),
    *(
        "％0a{x}",
        "；{x}",
        "\u2028{x}",
        "é`{x}`",
        "\x1b]0;{x}\x07",
        "\x7f;{x}",
        "${{IFS}};{x}",
        "${{x:-`{x}`}}",
    ),
    *(
        "'\"`$({x})`\"'",
        "]];{x};[[",
        "}};{x};{{",
        "fi;{x}",
        "done;{x}",
        "esac;{x}",
        "EOF\n{x}\n",
        "\\`{x}\\`",
    ),
    *("$(trap '{x}' EXIT)", "' || {x} || '", "%s;{x}", "__import__('os').system('{x}')", "\\'; {x} #"),
]


def payload(random: Random, number: int) -> tuple[str, str]:
    """A name that a file may have, and the file that would appear if it were taken for a command."""
    canary = f"canary{number}"
    while True:
        name = "".join(
            random.choice(["", "", " ", "x", "-", "--"])
            + random.choice(SHAPES).format(x=random.choice(COMMANDS).format(c=canary))
            for _ in range(random.choice([1, 1, 2]))
        )
        if "/" not in name and len(name.encode()) < 200:
            return name, canary


async def through_every_door(shell: Session, text: str) -> None:
    """The folder, a file in it and the place to stand have the name already."""
    folder = shell.shell.workspace.folder
    assert (await shell.terminal("pwd")).text.startswith(f"{folder}\n")
    (folder / text).mkdir()
    await shell.terminal("cd -- */")
    assert (await shell.terminal("pwd && ls ..")).text.startswith(f"{folder / text}\n")
    assert (await shell.call("execute_code", code=repr(text))).text.startswith(repr(text))
    for name in ("timeout", "background", "network"):
        assert (await shell.call("terminal", command="true", **{name: text})).failed
    assert (await shell.call("execute_code", code="1", timeout=text)).failed
    assert (await shell.call("process", id=text, action="stop")).failed
    assert (await shell.call("process", id="p1", action=text)).failed


def canaries(place: Path, name: str) -> list[str]:
    found = [os.path.join(root, name) for root, names, files in os.walk(place) if name in (*names, *files)]
    return [*found, *(each for each in (f"/{name}", name) if os.path.lexists(each))]


def attempt(text: str, canary: str, place: Path) -> list[str]:
    folder = place / "folder" / text
    folder.mkdir()
    (folder / "fixed").touch()
    try:
        play(session(folder, pretended()), lambda shell: through_every_door(shell, text))
        return canaries(place, canary)
    finally:
        shutil.rmtree(folder)


def test_a_payload_in_any_argument_runs_nothing(
    tier: Tier, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, drawn = list[str](), list(tier.draws(short=10, full=1_000))
    with area(os.geteuid()) as place:
        for draw in drawn:
            text, canary = payload(draw.random, draw.index)
            (place / "outside" / text).mkdir(exist_ok=True)
            monkeypatch.setattr(tempfile, "tempdir", str(place / "outside" / text))
            with draw:
                found += attempt(text, canary, place)
                assert found == []
        monkeypatch.undo()
    figures.tally(len(drawn), note="payloads in every argument")


def test_a_payload_in_the_paths_of_a_cell_runs_nothing_and_gives_nothing(
    tier: Tier, figures: Figures
) -> None:
    tried = 0
    with area(os.geteuid()) as place:
        for draw in tier.draws(short=5, full=200):
            text, canary = payload(draw.random, draw.index)
            tried += 1
            for mode in known_modes():
                assert in_paths(mode.wrap, text, canary, place) == []
    figures.tally(tried, note="payloads in the paths of a cell")


def in_paths(wrap: Wrap, text: str, canary: str, place: Path) -> list[str]:
    folder = place / "folder" / text
    for name in ("hidden", "sealed"):
        (folder / name / text).mkdir(parents=True)
    for name in ("more", "readable"):
        (place / "home" / name / text).mkdir(parents=True)

    def confined(argv: Sequence[str], spec: SandboxSpec) -> Launch:
        more, readable = place / "home" / "more" / text, place / "home" / "readable" / text
        hidden, sealed = folder / "hidden" / text, folder / "sealed" / text
        wider = replace(
            spec,
            writable=(more,),
            readable=(*spec.readable, readable),
            hidden=(hidden,),
            sealed=(*spec.sealed, sealed),
        )
        return wrap(argv, wider)

    async def script(shell: Session) -> None:
        outcome = await shell.terminal("pwd")
        assert outcome.text.startswith(f"{folder}\n"), outcome.text

    sandbox = pretended()
    assert isinstance(sandbox, Given)
    sandbox.given = replace(sandbox.given, mode=replace(sandbox.given.mode, wrap=confined))
    try:
        play(session(folder, sandbox), script)
        return canaries(place, canary)
    finally:
        shutil.rmtree(folder)
        for name in ("more", "readable"):
            shutil.rmtree(place / "home" / name)


def test_the_canaries_would_sing() -> None:
    """Many payloads do run if they are handed to a shell as they are."""
    random = Random(1)
    sung = 0
    with area(os.geteuid()) as place:
        for number in range(60):
            text, canary = payload(random, number)

            async def script(shell: Session, text: str = text) -> None:
                await shell.terminal(f"ls {text}")

            play(session(place / "folder", pretended()), script)
            sung += bool(canaries(place, canary))
    assert sung >= 10
