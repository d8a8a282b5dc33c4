"""Open the stores of an owner in a PostgreSQL database."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

from hone.core.errors import StoreError
from hone.core.loading import import_object
from hone.core.messages import canonical, digest
from hone.core.value import replace
from hone.stores.home import Stores
from hone.stores.postgres.claims import PostgresClaims
from hone.stores.postgres.curator_runs import PostgresCuratorRuns
from hone.stores.postgres.database import PostgresDatabase, PostgresPool
from hone.stores.postgres.documents import PostgresDocuments
from hone.stores.postgres.faults import moved_away
from hone.stores.postgres.histories import PostgresHistories
from hone.stores.postgres.jobs import PostgresJobs
from hone.stores.postgres.ledger import PostgresLedger
from hone.stores.postgres.machine import CHECKOUT, name_machine, read_name
from hone.stores.postgres.machine_rows import PostgresMachineRows
from hone.stores.postgres.migrating import is_current
from hone.stores.postgres.outbox import PostgresOutbox
from hone.stores.postgres.overview import PostgresOverview
from hone.stores.postgres.recall import PostgresRecall
from hone.stores.postgres.sessions import PostgresSessions
from hone.stores.postgres.shared_values import PostgresValues
from hone.stores.postgres.signals import Signals
from hone.stores.postgres.skill_catalog import PostgresSkillCatalog
from hone.stores.postgres.switchboard import PostgresSwitchboard
from hone.stores.postgres.vectors import PostgresVectors

LOCAL = "local"
"""The owner of the operator's rows. Users are other owners."""
DELIVERY = "hone.stores.postgres.delivery:PostgresDelivery"
"""Only a worker imports this, and with it the engine."""
USERS = "hone.stores.postgres.users:PostgresUsers"
"""Only a server imports this."""
AWAY = "SELECT place FROM moves WHERE owner = %(owner)s AND away"


def open_home(home: Path, url: str) -> Stores:
    """Open the stores whose journal and skills are published to a home. Raises StoreError."""
    try:
        checkout, machine = name_checkout(home), name_machine(home)
    except OSError as error:
        raise StoreError(f"{home / CHECKOUT} cannot be used: {error.strerror}.") from error
    return open_stores(url, checkout, machine=machine)


def name_checkout(home: Path, at: Path | None = None) -> str:
    """Give a home a permanent name that no copy of it shares. If two folders shared a name, an old file in
    one would count as its owner's edit of what the other has published since. `at` is where the home will be,
    if that is elsewhere."""
    name, lies = read_name(home), str((at or home).resolve())
    place = (name, (home / CHECKOUT).stat().st_ino, lies, socket.gethostname())
    return digest(canonical(place).encode())


def open_stores(url: str, checkout: str, owner: str = LOCAL, machine: str = "") -> Stores:
    """Connect, update the schema, and return all stores of one owner. `checkout` names the folder that
    journal and skills are published to, `machine` the one whose folders are trusted. Raises StoreError."""
    pool = PostgresPool(url)
    refuse_moved(pool, owner)
    signals, database = Signals(pool.dial), PostgresDatabase(pool, owner)
    opened = over(database, checkout, pool.close, machine, signals)
    return replace(
        opened,
        open_delivery=lambda: import_object(DELIVERY)(pool, owner),
        open_owner=partial(_open_owner, pool, signals),
        open_users=lambda: import_object(USERS)(pool, database),
    )


def _open_owner(pool: PostgresPool, signals: Signals, owner: str, folder: Path) -> Stores:
    database = PostgresDatabase(pool, owner)
    opened = over(database, name_checkout(folder), _keep_open, name_machine(folder), signals)
    return replace(opened, open_owner=partial(_open_owner, pool, signals))


async def _keep_open() -> None:
    """Do nothing: another owner's stores opened the connections."""


def _is_current(database: PostgresDatabase) -> bool:
    """Ask as the user of the address: the application's role need not see the additions."""
    with database.plainly(), database.dial() as connection:
        return is_current(connection)


def refuse_moved(pool: PostgresPool, owner: str) -> None:
    """Raise StoreError if this owner's data has moved away."""
    with pool.plainly(), pool.connection(pool.readers, owner) as rows:
        place = rows.value(AWAY)
    if place is not None:
        pool.forget()
        raise moved_away(pool.where, place)


def over(
    database: PostgresDatabase,
    checkout: str,
    close: Callable[[], Awaitable[None]],
    machine: str = "",
    signals: Signals | None = None,
) -> Stores:
    return Stores(
        PostgresSessions(database),
        PostgresLedger(database, checkout),
        PostgresSkillCatalog(database),
        PostgresJobs(database),
        PostgresRecall(database),
        PostgresCuratorRuns(database),
        PostgresOutbox(database),
        lambda: PostgresClaims(database),
        lambda: PostgresVectors(database),
        lambda: PostgresOverview(database),
        lambda: PostgresHistories(database),
        lambda: PostgresDocuments(database, machine or checkout),
        close,
        partial(asyncio.to_thread, _is_current, database),
        database.load,
        machine_rows=partial(PostgresMachineRows, database, machine or checkout),
        open_switchboard=lambda server: PostgresSwitchboard(database, server, signals),
        open_values=lambda: PostgresValues(database),
        owner=database.owner,
    )
