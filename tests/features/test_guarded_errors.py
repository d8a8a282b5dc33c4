"""What a memory backend says when it fails shows neither its key nor the password of its database."""

from collections.abc import Mapping

import pytest

from hone.core.backend import Availability, MemoryItem
from hone.core.errors import BackendError, Refused, Unfit
from hone.core.secrets import passwords
from hone.features.backends.current import NullBackend
from hone.features.backends.guarded import GuardedBackend

URL = "postgresql://me:pa%40ss7@db.example.com/memories"
WORDS = 'connection to "db.example.com" failed: the password pa@ss7 (pa%40ss7) is wrong'


class Talkative(NullBackend):
    """Fails, and repeats what it was given."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    async def available(self) -> Availability:
        return Availability(WORDS)

    async def store(
        self, user_id: str, key: str, value: str, metadata: Mapping[str, str] | None = None
    ) -> MemoryItem:
        raise self._error


@pytest.mark.parametrize("error", [BackendError(WORDS), Unfit(WORDS), Refused(WORDS), ValueError(WORDS)])
async def test_an_error_of_a_backend_shows_no_password(error: Exception) -> None:
    backend = GuardedBackend(Talkative(error), passwords(URL))
    with pytest.raises(BackendError) as caught:
        await backend.store("ann", "editor", "vim")
    said = str(caught.value)
    assert isinstance(caught.value, Unfit) == isinstance(error, Unfit)
    assert "pa@ss7" not in said
    assert "pa%40ss7" not in said
    assert said.startswith(("connection to", "The memory backend null failed with ValueError"))


async def test_a_reason_why_it_cannot_be_used_shows_none_either() -> None:
    found = await GuardedBackend(Talkative(ValueError()), passwords(URL)).available()
    gone = "[redacted: password]"
    assert found.why == f'connection to "db.example.com" failed: the password {gone} ({gone}) is wrong'
