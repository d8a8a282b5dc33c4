"""What came of it, read from the database afterwards, and what of that must not be."""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from hone.core.jobs import Job, State
from hone.core.ledger import Entry
from hone.core.messages import Role
from hone.stores.home import Stores
from tests.faults.fleet.clients import OWNER, Fate, Record
from tests.faults.fleet.machines import Fleet
from tests.faults.fleet.provider import TICKET

TAKEOVER = 5.0
"""Seconds until somebody else is at work, 99 times of 100: after a kill, and after a stop."""
NONE = "-"


async def examine(fleet: Fleet, record: Record) -> dict[str, Any]:
    """Return figures. Everybody must be idle by now."""
    jobs = await fleet.jobs()
    added: Counter[str] = Counter()
    for owner, stores in fleet.stores.items():
        for entry in await stores.ledger.entries():
            added.update(f"{owner}/{ticket}" for ticket in await find_added(stores, entry))
    stored, due = await read_talks(fleet.stores[OWNER], [job for owner, job in jobs if owner == OWNER])
    fed = [f"{owner}/{job.session}" for owner, job in jobs if job.session.startswith("s")]
    reviews = [*fed, *(f"{OWNER}/{ticket}" for ticket in due)]
    missing = [f"not applied: {each}" for each in reviews if not added[each]]
    for line in (*record.odd[:5], *missing[:5]):
        print(line, file=sys.stderr)
    for owner, job in jobs if missing else ():
        await print_review(fleet.stores[owner], owner, job, missing)
    acknowledged = [ticket for ticket, fate in record.fates.items() if fate is Fate.ACKNOWLEDGED]
    return {
        "reviews": len(jobs),
        "done": sum(job.state is State.DONE for _, job in jobs),
        "once": sum(added[each] == 1 for each in reviews),
        "not applied": sum(not added[each] for each in reviews),
        "twice": sum(count > 1 for count in added.values()),
        "two at once": len(fleet.log.overlaps()),
        "tries": fleet.log.count,
        "messages acknowledged": len(acknowledged),
        "messages lost": sum(not stored[ticket] for ticket in acknowledged),
        "messages twice": sum(count > 1 for count in stored.values()),
        "never acknowledged, stored": sum(
            stored[ticket] for ticket, fate in record.fates.items() if fate is Fate.UNKNOWN
        ),
        "never acknowledged": len(record.fates) - len(acknowledged),
        "answers 409, 503": (record.busy, record.refused),
        "odd answers": len(record.odd),
        "tracebacks": print_tracebacks(fleet),
    }


async def print_review(stores: Stores, owner: str, job: Job, missing: Sequence[str]) -> None:
    """If a review read a ticket that is missing, print what it said and heard."""
    nodes = (await stores.sessions.load(job.session)).transcript.nodes
    read = [ticket for node in nodes for _, ticket in TICKET.findall(node.message.text)]
    if not any(f"not applied: {owner}/{ticket}" in missing for ticket in read):
        return
    print(f"{owner}: {job}, of {len(nodes)} messages", file=sys.stderr)
    if job.review:
        for node in (await stores.sessions.load(job.review)).transcript.nodes[job.messages :]:
            said = node.message.calls or node.message.result or node.message.text
            print(f"    {node.message.role}: {said}"[:400], file=sys.stderr)


async def find_added(stores: Stores, entry: Entry) -> list[str]:
    """Return the tickets that one change wrote down."""
    digests = {each for delta in entry.change.deltas for each in (delta.before, delta.after) if each}
    texts = await stores.ledger.contents(digests)
    found = []
    for delta in entry.change.deltas:
        before, after = (texts[each].decode() if each else "" for each in (delta.before, delta.after))
        found += [line.split()[-3] for line in Counter(_entries(after)) - Counter(_entries(before))]
    return found


def _entries(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.endswith(" is green.") and "Ticket " in line]


async def read_talks(stores: Stores, jobs: Sequence[Job]) -> tuple[Counter[str], list[str]]:
    """Return how often each ticket was said to a server, and the last one of each conversation that a review
    became due for. One review may read what several of them are due for."""
    widest: dict[str, int] = {}
    for job in jobs:
        widest[job.session] = max(job.messages, widest.get(job.session, 0))
    said: Counter[str] = Counter()
    due = []
    for summary in await stores.sessions.list():
        if summary.header.id.startswith("s"):
            continue  # no server had it
        nodes = (await stores.sessions.load(summary.header.id)).transcript.nodes
        tickets = [
            (number, ticket)
            for number, node in enumerate(nodes, 1)
            if node.message.role is Role.USER
            for _, ticket in TICKET.findall(node.message.text)
        ]
        said.update(ticket for _, ticket in tickets)
        reviewed = [ticket for number, ticket in tickets if number <= widest.get(summary.header.id, 0)]
        due += reviewed[-1:]
    return said, due


def print_tracebacks(fleet: Fleet) -> int:
    told = [output.read_text(errors="replace") for output in fleet.outputs]
    traces = [each.partition("Traceback")[2] for each in told if "Traceback" in each]
    for trace in traces[:3]:
        print(trace, file=sys.stderr)
    return len(traces)


def summarize(seconds: Sequence[float]) -> dict[str, float | int | str]:
    found = sorted(seconds)
    if not found:
        return {"count": 0, "p50": NONE, "p99": NONE}
    return {
        "count": len(found),
        "p50": round(found[len(found) // 2], 2),
        "p99": round(found[int(len(found) * 0.99)], 2),
    }


def find_violations(found: Mapping[str, Any]) -> list[str]:
    """Return what must not be."""
    wrong = [
        f"{name}: {found[name]}"
        for name in (
            *("not applied", "twice", "two at once", "messages lost", "messages twice"),
            *("tracebacks", "odd answers", "ended by themselves"),
        )
        if found.get(name)
    ]
    if found["done"] != found["reviews"]:
        wrong.append(f"reviews not done: {found['reviews'] - found['done']}")
    for name in ("review", "killed", "stopped"):
        p99 = found.get("takeovers", {}).get(name, {}).get("p99", NONE)
        if p99 != NONE and p99 > TAKEOVER:
            wrong.append(f"takeover ({name}): {p99} s, more than {TAKEOVER:.0f}")
    if left := found.get("faults", {}).get("not taken over"):
        wrong.append(f"not taken over: {left}")
    return wrong


def print_table(found: Mapping[str, Any]) -> None:
    rows = [(name, value) for name, value in found.items() if name not in ("faults", "takeovers")]
    rows += [(f"fault: {name}", count) for name, count in sorted(found["faults"].items())]
    titles = {
        "review": "review after a kill",
        "killed": "conversation of a killed server",
        "stopped": "conversation of a stopped server",
    }
    for name, each in found["takeovers"].items():
        rows.append(
            (f"takeover, {titles[name]}", f"{each['count']}: p50 {each['p50']} s, p99 {each['p99']} s")
        )
    width = max(len(name) for name, _ in rows)
    for name, value in rows:
        print(f"{name:{width}}  {' and '.join(map(str, value)) if isinstance(value, tuple) else value}")
