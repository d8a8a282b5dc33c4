"""Open the stores of a home folder: in SQLite, read-only if it cannot be written, or in memory if there is
nothing to read either."""

import os
from collections.abc import Awaitable, Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hone.core.curation import CuratorRuns
from hone.core.errors import StoreError
from hone.core.jobs import Jobs
from hone.core.ledger import Ledger
from hone.core.loading import import_object
from hone.core.outbox import Outbox
from hone.core.ports import Sessions
from hone.core.recall import Query, Recall, SearchResult
from hone.core.skill import SkillCatalog
from hone.files.atomic import make_folder
from hone.stores.curator_runs import SqliteCuratorRuns
from hone.stores.database import Database, Store
from hone.stores.jobs import SqliteJobs
from hone.stores.ledger import SqliteLedger
from hone.stores.outbox import SqliteOutbox
from hone.stores.skill_catalog import SqliteSkillCatalog
from hone.stores.sqlite import SqliteSessions

if TYPE_CHECKING:
    from hone.core.claims import Claims
    from hone.core.clock import Clock
    from hone.core.delivery import Delivery
    from hone.core.documents import Documents
    from hone.core.embedding import Vectors
    from hone.core.histories import Histories
    from hone.core.machine_rows import OpenMachineRows
    from hone.core.monitor import DatabaseLoad
    from hone.core.overview import Overview
    from hone.core.shared_values import SharedValues
    from hone.core.switchboard import Switchboard
    from hone.core.users import UserDirectory

FILE = "hone.db"
MOVED = "moved.json"
"""The file that says that the data is in a remote database."""
CLAIMS = "hone.stores.claims:FileClaims"
DELIVERY = "hone.stores.delivery:EmbeddedDelivery"
RECALL = "hone.stores.recall:SqliteRecall"
VECTORS = "hone.stores.vectors:SqliteVectors"
HISTORIES = "hone.stores.histories:SqliteHistories"
DOCUMENTS = "hone.files.documents:FileDocuments"
OVERVIEW = "hone.stores.overview:SqliteOverview"
POSTGRES = "hone.stores.postgres.home:open_home"
"""Imported with the first home whose database is remote."""
MOVED_AWAY = "hone.stores.moving.marker:moved_away"


class Stores(Struct, frozen=True):
    """The stores of a home. `closed` says why it stores nothing new, if so; `readonly`: it can only be
    read."""

    sessions: Sessions
    ledger: Ledger
    catalog: SkillCatalog
    jobs: Jobs
    recall: Recall
    curator_runs: CuratorRuns
    outbox: Outbox
    open_claims: "Callable[[], Claims]"
    open_vectors: "Callable[[], Vectors]"
    open_overview: "Callable[[], Overview]"
    open_histories: "Callable[[], Histories]"
    open_documents: "Callable[[], Documents]"
    close: Callable[[], Awaitable[None]]
    is_current: Callable[[], Awaitable[bool]]
    """Tells whether the schema is this Hone's. Raises StoreError if the database does not answer."""
    load: "Callable[[], DatabaseLoad]"
    closed: str = ""
    readonly: bool = False
    machine_rows: "OpenMachineRows | None" = None
    """Opens rows about this machine's files, if the database is remote. Otherwise a home has them in
    files."""
    open_switchboard: "Callable[[str], Switchboard] | None" = None
    """Opens what the servers on these stores share, for one of them; None if there is only one."""
    open_values: "Callable[[], SharedValues] | None" = None
    open_delivery: "Callable[[], Delivery] | None" = None
    open_owner: "Callable[[str, Path], Stores] | None" = None
    """Opens the stores of another owner in the same database, with a folder for files. They share its
    connections and are not closed separately."""
    owner: str = "local"
    """The owner of the rows. A home in SQLite belongs to one person."""
    open_users: "Callable[[], UserDirectory] | None" = None
    """Opens what is known about the users of a team's Hone; None for a one-person home."""

    def delivery(self, clock: "Clock") -> "Delivery":
        """The delivery of queued work to workers: an engine in the database, or polling this home's queue."""
        if self.open_delivery is not None:
            return self.open_delivery()
        delivery: Delivery = import_object(DELIVERY)(self.jobs, clock)
        return delivery

    @property
    def shared(self) -> bool:
        """Whether processes on other machines may use them, too."""
        return self.open_switchboard is not None

    @property
    def claims(self) -> "Claims":
        """The claims on work among all processes that share these stores. Most commands claim nothing."""
        return self.open_claims()

    @property
    def vectors(self) -> "Vectors":
        """The vectors of messages and short texts. They are loaded if an embedder is set."""
        return self.open_vectors()

    @property
    def documents(self) -> "Documents":
        """Templates, experiments, long results, and what the owner allows and trusts."""
        return self.open_documents()

    @property
    def overview(self) -> "Overview":
        """Sums and windows for the page."""
        return self.open_overview()

    @property
    def histories(self) -> "Histories":
        """The index from a client's history to its session. Only a server loads it."""
        return self.open_histories()


class LateRecall(Store):
    """Imports the search with the first question: most commands ask none."""

    @cached_property
    def _recall(self) -> Recall:
        recall: Recall = import_object(RECALL)(self._database)
        return recall

    async def search(self, query: Query) -> SearchResult:
        return await self._recall.search(query)


def open_stores(home: Path, address: str = "") -> Stores:
    """Open the file in the home, or the PostgreSQL database at an address. Raises StoreError, or Corrupt if
    the file is not a database. Unreadable data is never reported as empty."""
    if address:
        return _open_elsewhere(home, address)
    path = home / FILE
    if _exists(home / MOVED):
        raise import_object(MOVED_AWAY)(home)
    if not _writable(home) and not _exists(path):
        closed = f"{home} cannot be written: this conversation is not kept, and nothing is learned."
        return over(home, Database.in_memory(), closed)
    database = Database.open(path, overlay=True)
    closed = f"{home} is read-only: new messages are not kept, and nothing is learned."
    return over(home, database, closed if database.readonly else "")


def _open_elsewhere(home: Path, address: str) -> Stores:
    if not _writable(home):
        raise StoreError(
            f"{home} cannot be written. With a database elsewhere Hone still needs a folder for its files."
        )
    try:
        open_home = import_object(POSTGRES)
    except ImportError as error:
        raise StoreError("PostgreSQL needs an extra: pip install 'hone-agent[postgres]'") from error
    stores: Stores = open_home(home, address)
    return stores


def over(home: Path, database: Database, closed: str = "") -> Stores:
    """Return all stores of one database, which are closed with it."""
    return Stores(
        SqliteSessions(database),
        SqliteLedger(database),
        SqliteSkillCatalog(database),
        SqliteJobs(database),
        LateRecall(database),
        SqliteCuratorRuns(database),
        SqliteOutbox(database),
        lambda: import_object(CLAIMS)(home),
        lambda: import_object(VECTORS)(database),
        lambda: import_object(OVERVIEW)(database),
        lambda: import_object(HISTORIES)(database),
        lambda: import_object(DOCUMENTS)(home),
        database.close,
        database.is_current,
        database.load,
        closed,
        database.readonly,
    )


def _exists(path: Path) -> bool:
    """Tell whether a file exists. Raises StoreError if that is unknown."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}.") from error
    return True


def _writable(home: Path) -> bool:
    try:
        make_folder(home)
    except OSError:
        return False
    return os.access(home, os.W_OK)
