"""Turn the errors of PostgreSQL into ours: sentences that a user can act on."""

from urllib.parse import urlsplit

import psycopg
from psycopg import errors

from hone.core.errors import Corrupt, StoreError
from hone.core.visible import visible


def is_lost(error: psycopg.OperationalError) -> bool:
    """Tell whether the connection broke, or there was none."""
    return error.sqlstate is None or error.sqlstate.startswith(("08", "57P"))


def describe(url: str) -> str:
    """Name a database without its password."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "the PostgreSQL database"
    host = parts.hostname or "local socket"
    return f"postgresql://{host}/{parts.path.lstrip('/') or 'postgres'}"


def moved_away(where: str, place: str) -> StoreError:
    return StoreError(
        f"The data in {where} moved to {visible(place)}. Use it there, or here again: "
        "hone config unset database"
    )


def explain(error: Exception, where: str) -> StoreError:
    match error:
        case psycopg.Error(sqlstate="HN001"):
            return moved_away(where, error.diag.message_primary or "another place")
        case errors.InsufficientPrivilege():
            return StoreError(
                f"This user may not work in {where} ({_first(error)}). Its administrator can allow that: "
                "GRANT CREATE ON DATABASE … TO …"
            )
        case errors.LockNotAvailable() | errors.DeadlockDetected() | errors.SerializationFailure():
            return StoreError(
                f"Another process keeps {where} locked; this step changed nothing. "
                "Try again when it has finished."
            )
        case errors.DiskFull():
            return StoreError(
                f"There is no space left for {where}; this step changed nothing. Make room and try again."
            )
        case errors.ReadOnlySqlTransaction():
            return StoreError(f"{where} is read-only; nothing was changed.")
        case errors.IntegrityError() | errors.DataCorrupted() | errors.IndexCorrupted():
            return Corrupt(f"The database {where} is damaged ({_first(error)}). Restore it from a backup.")
        case errors.ProgramLimitExceeded() | errors.DataError() | UnicodeError() | OverflowError():
            return StoreError(
                f"There is a value that {where} cannot hold ({_first(error)}); this step changed nothing."
            )
        case psycopg.OperationalError():
            return StoreError(f"{where} does not answer ({_first(error)}). Check that the server runs.")
    return StoreError(f"The database {where} cannot be used: {_first(error)}.")


def _first(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
