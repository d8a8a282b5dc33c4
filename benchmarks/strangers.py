"""`python -m benchmarks.strangers`: does the time of an answer tell somebody else's id from nobody's?

One user of a server asks for conversations, skills and templates by ids that another user has, and by ids
that nobody has, in turns.
"""

import argparse
import asyncio
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.recall import quantile
from tests import databases
from tests.isolation.people import Person
from tests.isolation.storm import inhabited


def name_paths(person: Person) -> tuple[str, ...]:
    return (
        f"/api/sessions/{person.session}",
        f"/api/skills/{person.word}-skill",
        f"/api/templates/{person.word}",
    )


async def measure(folder: Path, count: int) -> None:
    with databases.new_database() as url:
        async with inhabited(folder, url, 2) as town:
            asker, other = town.people
            sides = (name_paths(other), name_paths(Person("nobody")))
            async with town.visit(asker) as client:
                for paths in zip(*sides, strict=True):
                    took: dict[str, list[float]] = {path: [] for path in paths}
                    for number in range(count):
                        for path in paths if number % 2 else reversed(paths):
                            begun = time.perf_counter()
                            response = await client.get(path)
                            took[path].append((time.perf_counter() - begun) * 1000)
                            assert response.status_code == 404
                    theirs, none = (
                        f"{median(each):.3f}, {quantile(each, 0.9):.3f}" for each in took.values()
                    )
                    print(f"{paths[0].rpartition('/')[0]}: somebody else's {theirs} ms, nobody's {none} ms")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strangers", description=__doc__)
    parser.add_argument("--count", type=int, default=600, help="questions of each kind [%(default)s]")
    with TemporaryDirectory(prefix="hone-bench-") as folder:
        asyncio.run(measure(Path(folder), parser.parse_args().count))


if __name__ == "__main__":
    main()
