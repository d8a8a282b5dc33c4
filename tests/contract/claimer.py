"""A process that claims. It says so and waits for a line, or adds to a number in a file so often."""

import asyncio
import sys
from pathlib import Path

from tests.contract.test_claims import open_claims


async def hold(kind: str, place: str, name: str) -> None:
    async with open_claims(kind, place) as claims, claims.hold(name) as held:
        print("held" if held else "refused", flush=True)
        await asyncio.to_thread(sys.stdin.readline)


async def count(kind: str, place: str, name: str, file: str, rounds: str) -> None:
    path, left = Path(file), int(rounds)
    print("counting", flush=True)
    async with open_claims(kind, place) as claims:
        while left:
            async with claims.hold(name) as held:
                if held:
                    path.write_text(str(int(path.read_text()) + 1))
                    left -= 1


if __name__ == "__main__":
    asyncio.run(hold(*sys.argv[1:]) if len(sys.argv) == 4 else count(*sys.argv[1:]))
