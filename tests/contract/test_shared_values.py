"""J2, I3: a document that servers share is changed by one at a time, and all see the change at once."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from hone.core.errors import Refused
from hone.core.shared_values import SharedValues
from tests.contract import kinds
from tests.contract.kinds import new_owner


def open_values(owner: str) -> SharedValues:
    stores = kinds.postgres(owner)
    assert stores.open_values is not None
    return stores.open_values()


def test_a_change_is_seen_by_all_none_is_lost_and_owners_have_their_own() -> None:
    owner = new_owner()
    one, two, other = open_values(owner), open_values(owner), open_values(new_owner())
    assert (one.read("a"), two.read("a")) == (b"", b"")
    assert one.change("a", lambda _: b"\0\xff") == b"\0\xff"
    assert (two.read("a"), two.read("b"), other.read("a")) == (b"\0\xff", b"", b"")
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda n: (one, two)[n % 2].change("n", lambda old: b"%d" % (int(old or 0) + 1)), range(60)
            )
        )
    assert one.read("n") == b"60"


def test_a_change_that_is_refused_changes_nothing() -> None:
    values = open_values(new_owner())
    values.change("a", lambda _: b"before")

    def refuse(_: bytes) -> bytes:
        raise Refused("no")

    with pytest.raises(Refused):
        values.change("a", refuse)
    assert values.read("a") == b"before"
