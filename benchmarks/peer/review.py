"""Turns of the peer beside a review and without, run by its Python: `review.py TURNS LATENCY MESSAGES`.

One conversation in one process. Each time a turn that sets a review off, or one that does not, and then the
turn that is measured, at some moment of that review.
"""

import json
import sys
import threading
import time
from random import Random
from typing import Any

from benchmarks.peer.agent import Peer
from benchmarks.peer.month import reviewed
from benchmarks.talk import history, spoken

BREATH = 0.1
"""Seconds after the turn that triggered it, as with Hone."""
TRIES = 5


def main() -> None:
    turns, latency, messages = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    agent, random = Peer().agent("review"), Random(1)
    windows: dict[str, list[tuple[int, int]]] = {"due": [], "off": []}
    order = list(windows)
    for number in range(turns + 1):
        random.shuffle(order)
        for side in order:
            window = take(agent, random, latency, messages, due=side == "due")
            windows[side] += [window] if number else []  # the first of each does not count
    print(json.dumps({"beside": windows}))


def take(agent: Any, random: Random, latency: float, messages: int, *, due: bool) -> tuple[int, int]:
    """Measure one turn. Repeat it if its review ended before the turn began."""
    for _ in range(TRIES):
        talked(agent, history(messages), int(due))
        time.sleep(BREATH + random.uniform(0, 2 * latency))
        is_beside = any(thread.name == "bg-review" for thread in threading.enumerate())
        window = talked(agent, history(messages), 0)
        reviewed()
        if is_beside == due:
            return window
    raise SystemExit("a review was at work where none was to be, or none: this is another workload")


def talked(agent: Any, past: list[dict[str, Any]], every: int) -> tuple[int, int]:
    """Run one turn. A review is due after `every` turns; 0: never."""
    agent._memory_nudge_interval, agent._turns_since_memory = every, 0
    sent = time.monotonic_ns()
    done = agent.run_conversation(spoken(0), conversation_history=past)
    if done.get("failed") or not done.get("completed"):
        raise SystemExit(f"the peer did not answer: {json.dumps(done, default=str)[-1000:]}")
    return sent, time.monotonic_ns()


if __name__ == "__main__":
    main()
