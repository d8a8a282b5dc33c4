"""One turn with the peer in a process that stays, run by the peer's Python: `exits.py [TURN]`.

Without a turn it says hello and stays until no review is at work: the next start after processes that ended.
"""

import asyncio
import sys

from benchmarks.peer.agent import Peer
from benchmarks.peer.month import reviewed, words


async def stay(turn: str) -> None:
    peer = Peer()
    talk = await peer.open(0)
    await talk.send(words(int(turn)) if turn else "hi")
    if turn:
        print("answered", flush=True)
        await asyncio.Event().wait()
    reviewed()
    await peer.close()


def main() -> None:
    asyncio.run(stay("".join(sys.argv[1:])))


if __name__ == "__main__":
    main()
