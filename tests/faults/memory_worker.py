"""A process to be killed: `python memory_worker.py postgres|honcho PLACE`.

It keeps memos for ever and says the key of each as soon as it is acknowledged. It loads what it needs alone.
"""

import asyncio
import sys
from itertools import count

from hone.core.clock import SystemClock
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.honcho import HonchoBackend
from hone.features.backends.postgres import PostgresBackend
from tests.doubles.honcho import KEY

VALUE = "the value of {}" + 40 * " and more of it"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def store(kind: str, place: str) -> None:
    clock = SystemClock()
    match kind:
        case "postgres":
            backend = GuardedBackend(PostgresBackend(place, clock, is_cloud=False))
        case _:
            backend = GuardedBackend(HonchoBackend(place, KEY, clock, is_cloud=True))
    for number in count():
        key = f"key-{number}"
        await backend.store("ann", key, VALUE.format(key))
        say(key)


if __name__ == "__main__":
    asyncio.run(store(*sys.argv[1:]))
