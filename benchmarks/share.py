"""How much of a review's first request the provider's cache already holds, on every surface.

By bytes: what the review's first request has in common with the beginning of the conversation's last one, as
a share of that. Both are taken in the order that a provider reads them in (see benchmarks.month).
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from urllib.request import Request, urlopen

from benchmarks.bench import HONE, ROOT, Bench, environment, lodged, play
from benchmarks.figures import Row, Side
from benchmarks.learner import REVIEWS, Body, Learner, furnish, learning, words
from benchmarks.month import prompt
from benchmarks.server import running
from hone import Hone
from hone.models.fake_provider.caching import shared
from hone.runtime.task_runner import ignore

TURNS = 3
"""A review is due after this many."""
SETTINGS = f"[learning]\nturns = {TURNS}\niterations = 0\n"
PEERS = f"memory: {{nudge_interval: {TURNS}}}\nskills: {{creation_nudge_interval: 0}}\n"
LEAST = 99.0
FURTHER = "The user is on a train and reads on a small screen."
"""System text as a surface adds it: a chat platform, an editor, an API."""
FORMATS = {"openai": "OpenAI chat", "anthropic": "Anthropic messages"}
PATIENCE = 60.0

Surface = Callable[[Learner, Path, Path, Mapping[str, str]], None]
"""Runs a conversation in a home and a folder, and the review after it."""


def share(bench: Bench) -> Iterator[Row]:
    for format, name in list(FORMATS.items())[: 1 if bench.quick else None]:
        for spec, talk in list(SURFACES.items())[: 1 if bench.quick else None]:
            found = (100 * measured(bench, talk, format),)
            row = f"review's first request cached, {name}, {spec}"
            peer, absent = beside(bench, format, spec)
            yield Row(row, "%", found, aim=LEAST, peer=peer, absent=absent)


def measured(bench: Bench, talk: Surface, format: str) -> float:
    home, folder, notes = bench.folder(), bench.folder(), bench.folder()
    furnish(folder, TURNS)
    (home / "hone.toml").write_text(SETTINGS)
    with learning(environment(notes), notes) as learner:
        environ = environment(home, learner.url) | {"HONE_MODEL": f"{format}/scripted"}
        talk(learner, home, folder, environ)
        return known(learner.bodies(), "hone")


def known(bodies: list[Body], side: Side) -> float:
    """Return the share of the conversation's last request that the review's first one begins with."""
    place = next(at for at, body in enumerate(bodies) if REVIEWS[side] in str(body["messages"][-1]))
    review, last = prompt(bodies[place]), prompt(bodies[place - 1])
    return shared(review, last) / len(last)


def library(further: str, _: Learner, home: Path, folder: Path, environ: Mapping[str, str]) -> None:
    command: list[str | Path] = [sys.executable, "-m", "benchmarks.share", home, folder, further]
    play(command, {**environ, "PYTHONPATH": str(ROOT)}, folder)


def command_line(_: Learner, __: Path, folder: Path, environ: Mapping[str, str]) -> None:
    """Run each turn as a process, and the review, too."""
    session: list[str] = []
    for turn in range(TURNS):
        told = json.loads(play([HONE, "run", "--json", *session, words(turn)], environ, folder))
        session = ["--resume", told["session"]]
    play([HONE, "worker", "--once"], environ, folder)


def served(stream: bool, learner: Learner, home: Path, _: Path, environ: Mapping[str, str]) -> None:
    """Use the server's own review."""
    furnish(home, TURNS)
    with running(home, learner.provider, environ["HONE_MODEL"]) as (url, _process):
        key = (home / "serve.key").read_text().strip()
        for turn in range(TURNS):
            post(url, key, {"messages": [{"role": "user", "content": words(turn)}], "stream": stream})
        until(lambda: any(REVIEWS["hone"] in str(body["messages"][-1]) for body in learner.bodies()))


def post(url: str, key: str, body: Body) -> None:
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "X-Hone-Session": "share",
    }
    request = Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), headers)
    with urlopen(request, timeout=PATIENCE) as answer:
        answer.read()


def until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > end:
            raise SystemExit("no review came")
        time.sleep(0.1)


SURFACES: Mapping[str, Surface] = {
    "library with further system text": partial(library, FURTHER),
    "`run`, then `worker`": command_line,
    "library": partial(library, ""),
    "`serve`, streamed": partial(served, True),
    "`serve`, whole": partial(served, False),
}


def beside(bench: Bench, format: str, spec: str) -> tuple[tuple[float, ...], str]:
    """Return the peer's share, or why there is none."""
    if not bench.peer:
        return (), ""
    if format == "anthropic":
        return (), "needs an extra"
    if spec.startswith("`run`"):
        return (), "sends none"
    if spec.startswith("`serve`"):
        return (), "needs an extra"
    further = FURTHER if "further" in spec else ""
    home, folder, notes = bench.folder(), bench.folder(), bench.folder()
    furnish(folder, TURNS)
    with learning(environment(notes), notes) as learner:
        environ = environment(home, learner.url) | lodged(bench.peer, home, learner.url, PEERS)
        command: list[str | Path] = [
            bench.peer,
            "-m",
            "benchmarks.peer.month",
            home,
            folder,
            "1",
            str(TURNS),
            further,
        ]
        play(command, {**environ, "PYTHONPATH": str(ROOT)}, folder)
        return (100 * known(learner.bodies(), "peer"),), ""


async def talk(home: Path, folder: Path, further: str) -> None:
    async with Hone(home=home, folder=folder, system=further, learning="queue") as hone:
        hone.background.attend(ignore)
        session = await hone.session()
        for turn in range(TURNS):
            await session.send(words(turn))
        await hone.background.drain()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.share", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("further")
    options = parser.parse_args()
    asyncio.run(talk(options.home, options.folder, options.further))


if __name__ == "__main__":
    main()
