"""What a month of work costs: 100 turns in ten conversations, with reviews and without.

A token is four bytes of a request in the order that a provider reads it in: tools, system text, messages.
Read from the cache is what a request has in common with the beginning of any earlier one of the same side.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import ROOT, UNREVIEWED, Bench, environment, lodged, play
from benchmarks.figures import Row, Side, Unit
from benchmarks.learner import REVIEWS, Body, furnish, learning, words
from hone import Hone
from hone.core.model import Usage
from hone.models.fake_provider.caching import shared
from hone.models.wrappers import PRICES
from hone.runtime.task_runner import ignore
from hone.settings import Settings
from hone.settings.sections import Learning

TURNS, TALKS = 10, 10
TOGETHER = 2
"""Two can run at once, since no time is measured here."""
PRICED = ("anthropic/claude-sonnet-5-5", "openai/gpt-5.4")


@dataclass(frozen=True, slots=True)
class Month:
    """Tokens, and the number of reviews."""

    fresh: int
    cached: int
    output: int
    reviews: int

    def cost(self, model: str) -> float:
        """Return the cost. Both sides mark their requests for Anthropic's cache: what is not read from it is
        written to it."""
        written = self.fresh if model.startswith("anthropic/") else 0
        return PRICES[model].of(Usage(self.fresh + self.cached, self.cached, written, self.output))


def month(bench: Bench) -> Iterator[Row]:
    talks, turns = (1, 4) if bench.quick else (TALKS, TURNS)
    with ThreadPoolExecutor(TOGETHER) as threads:
        begun = {
            (side, reviews): threads.submit(lived, bench, side, talks, turns, reviews=reviews)
            for side in sides(bench)
            for reviews in (True, False)
        }
    on, off = ({side: begun[side, reviews].result() for side in sides(bench)} for reviews in (True, False))
    name = f"{talks * turns} turns"
    yield line(f"{name}: reviews", "reviews", {side: each.reviews for side, each in on.items()})
    yield from spent(f"{name}, reviews on", on)
    yield from spent(f"{name}, reviews off", off)
    for model in PRICED:
        dear, cheap = ({side: each.cost(model) for side, each in months.items()} for months in (on, off))
        added = {side: dear[side] - cheap[side] for side in dear}
        yield line(f"{name}: what reviews add, at the prices of {model}", "$", added, lead=1)
        share = {side: dear[side] / cheap[side] for side in dear}
        yield line(f"{name}: cost with reviews / without, {model}", "ratio", share)


def spent(name: str, months: Mapping[Side, Month]) -> Iterator[Row]:
    yield line(f"{name}: input not cached", "tokens", {side: each.fresh for side, each in months.items()})
    yield line(
        f"{name}: input from the cache", "tokens", {side: each.cached for side, each in months.items()}
    )
    yield line(f"{name}: output", "tokens", {side: each.output for side, each in months.items()})
    for model in PRICED:
        costs = {side: each.cost(model) for side, each in months.items()}
        yield line(f"{name}, at the prices of {model}", "$", costs, lead=1)


def sides(bench: Bench) -> Sequence[Side]:
    return ("hone", "peer") if bench.peer else ("hone",)


def line(name: str, unit: Unit, found: Mapping[Side, float], lead: float | None = None) -> Row:
    peer = (found["peer"],) if "peer" in found else ()
    return Row(name, unit, (found["hone"],), peer=peer, lead=lead)


def lived(bench: Bench, side: Side, talks: int, turns: int, *, reviews: bool) -> Month:
    home, folder, notes = bench.folder(), bench.folder(), bench.folder()
    furnish(folder, talks * turns)
    with learning(environment(notes), notes) as learner:
        environ = environment(home, learner.url) | {"PYTHONPATH": str(ROOT)}
        module, python = "benchmarks.month", Path(sys.executable)
        if side == "peer" and bench.peer:
            module, python = "benchmarks.peer.month", bench.peer
            environ |= lodged(python, home, learner.url, "" if reviews else UNREVIEWED)
        arguments: list[str | Path] = [home, folder, str(talks), str(turns)]
        arguments += ["on" if reviews else "off"] if side == "hone" else []
        play([python, "-m", module, *arguments], environ, folder)
        bodies = learner.bodies()
        return counted(bodies, learner.output(), REVIEWS[side])


def counted(bodies: Sequence[Body], output: int, question: str) -> Month:
    past: list[bytes] = []
    fresh = cached = reviews = 0
    for body in bodies:
        text = prompt(body)
        known = max((shared(text, each) for each in past), default=0)
        cached += known // 4
        fresh += (len(text) - known) // 4
        past.append(text)
        reviews += question in str(body["messages"][-1]["content"])
    return Month(fresh, cached, output, reviews)


def prompt(body: Body) -> bytes:
    """Return a request in the order that a provider reads it in, without cache marks."""
    parts = [body.get("tools"), body.get("system"), *body["messages"]]
    return "\n".join(json.dumps(unmarked(part), ensure_ascii=False) for part in parts if part).encode()


def unmarked(value: object) -> object:
    if isinstance(value, dict):
        return {key: unmarked(each) for key, each in value.items() if key != "cache_control"}
    return [unmarked(each) for each in value] if isinstance(value, list) else value


async def live(home: Path, folder: Path, talks: int, turns: int, *, reviews: bool) -> None:
    every = Learning() if reviews else Learning(turns=0, iterations=0)
    settings = Settings(model="openai/scripted", learning=every)
    async with Hone(home=home, folder=folder, settings=settings, learning="queue") as hone:
        hone.background.attend(ignore)
        for talk in range(talks):
            session = await hone.session()
            for turn in range(talk * turns, (talk + 1) * turns):
                done = await session.send(words(turn))
                if done.error:
                    raise SystemExit(f"Hone did not answer: {done.error}")
                await hone.background.drain()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.month", description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("talks", type=int)
    parser.add_argument("turns", type=int)
    parser.add_argument("reviews", choices=("on", "off"))
    options = parser.parse_args()
    reviews = options.reviews == "on"
    asyncio.run(live(options.home, options.folder, options.talks, options.turns, reviews=reviews))


if __name__ == "__main__":
    main()
