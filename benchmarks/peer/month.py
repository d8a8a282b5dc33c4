"""A month of work with the peer, run by the peer's Python: `month.py HOME FOLDER TALKS TURNS [TEXT]`.

TEXT is further system text, as its gateway hands it to an agent.
"""

import asyncio
import sys
import threading

from benchmarks.peer.agent import Peer
from benchmarks.talk import WORDS

READS = 3


def words(turn: int) -> str:
    """Return the same as benchmarks.learner, which the peer's Python cannot import."""
    first = turn * READS
    return f"The port of project {turn} is {4000 + turn}. {WORDS}read={first}-{first + READS - 1}"


def reviewed() -> None:
    """Wait until no review runs, like a user who takes time for the next words."""
    for thread in threading.enumerate():
        if thread.name == "bg-review":
            thread.join()


async def live(talks: int, turns: int, further: str) -> None:
    peer = Peer(ephemeral_system_prompt=further or None)
    for number in range(talks):
        talk = await peer.open(0)
        for turn in range(number * turns, (number + 1) * turns):
            await talk.send(words(turn))
            reviewed()
    await peer.close()


def main() -> None:
    talks, turns = map(int, sys.argv[3:5])
    asyncio.run(live(talks, turns, "".join(sys.argv[5:])))


if __name__ == "__main__":
    main()
