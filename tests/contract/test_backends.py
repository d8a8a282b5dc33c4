"""G1: what every memory backend promises: the file, the real server, the service's double, and none."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hone.core.backend import Backend, Deleted
from hone.core.clock import ManualClock
from hone.core.errors import BackendError, Unfit
from tests import databases
from tests.backing import opened
from tests.conftest import Figures, Tier

postgres = databases.postgres

KINDS = ["null", "sqlite", "postgres", "honcho"]
Open = Callable[..., AbstractAsyncContextManager[Backend]]


@pytest.fixture(params=KINDS)
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Any of them."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    return lambda clock=None: opened(request.param, tmp_path, url, clock)


@pytest.fixture(params=KINDS[1:])
def keeping(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Those that keep what they are given."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    return lambda clock=None: opened(request.param, tmp_path, url, clock)


async def test_what_is_not_there_is_nothing_and_no_error(each: Open) -> None:
    async with each() as backend:
        assert await backend.available()
        assert await backend.retrieve("ann", "editor") is None
        assert list(await backend.query("ann", "which editor?")) == []
        assert list(await backend.list_keys("ann")) == []
        assert await backend.delete("ann", "editor") is Deleted.ABSENT


KEYS = ["", "  ", "*", "two\nlines", "a\ttab", "k" * 201]


async def test_a_key_that_no_backend_could_keep_is_refused_by_all(each: Open) -> None:
    async with each() as backend:
        for key in KEYS:
            acts = (backend.store("ann", key, "v"), backend.retrieve("ann", key), backend.delete("ann", key))
            for act in acts:
                with pytest.raises(Unfit):
                    await act


async def test_a_value_that_is_empty_or_too_long_is_refused_by_all(each: Open) -> None:
    async with each() as backend:
        for value in ("", " \n", "x" * 20_001):
            with pytest.raises(Unfit):
                await backend.store("ann", "editor", value)


async def test_a_memo_comes_back_as_it_went_in_with_its_times(keeping: Open) -> None:
    clock = ManualClock(datetime(2026, 5, 1, 8, tzinfo=UTC))
    async with keeping(clock) as backend:
        given = await backend.store("ann", "editor", "vim, with two spaces", {"trust": "owner", "empty": ""})
        assert (given.created_at, given.updated_at) == (clock.now(), clock.now())
        assert given == await backend.retrieve("ann", "editor")
        assert (given.user_id, given.key, given.value) == ("ann", "editor", "vim, with two spaces")
        assert given.metadata == {"trust": "owner", "empty": ""}


async def test_storing_again_replaces_value_and_metadata_and_keeps_when_it_was_made(keeping: Open) -> None:
    clock = ManualClock()
    async with keeping(clock) as backend:
        made = clock.now()
        await backend.store("ann", "editor", "emacs", {"a": "1"})
        clock.advance(60)
        await backend.store("ann", "editor", "vim", {"b": "2"})
        memo = await backend.retrieve("ann", "editor")
        assert memo is not None
        assert (memo.value, memo.metadata) == ("vim", {"b": "2"})
        assert (memo.created_at, memo.updated_at) == (made, made + timedelta(seconds=60))
        assert list(await backend.list_keys("ann")) == ["editor"]
        assert list(await backend.query("ann", "emacs")) == []
        assert [each.value for each in await backend.query("ann", "vim")] == ["vim"]


async def test_keys_are_listed_by_when_they_were_last_stored_whatever_the_clock_says(keeping: Open) -> None:
    clock = ManualClock()
    async with keeping(clock) as backend:
        for key in ("one", "two", "three"):
            await backend.store("ann", key, f"the value of {key}")
            clock.advance(-3600)
        await backend.store("ann", "one", "again")
        assert list(await backend.list_keys("ann")) == ["one", "three", "two"]
        assert list(await backend.list_keys("ann", 2)) == ["one", "three"]
        memo = await backend.retrieve("ann", "one")
        assert memo is not None
        assert memo.updated_at >= memo.created_at


async def test_what_was_deleted_is_in_no_answer_and_can_be_stored_anew(keeping: Open) -> None:
    async with keeping() as backend:
        await backend.store("ann", "editor", "vim")
        assert await backend.delete("ann", "editor") in (Deleted.GONE, Deleted.HIDDEN)
        assert await backend.retrieve("ann", "editor") is None
        assert list(await backend.query("ann", "vim editor")) == []
        assert list(await backend.list_keys("ann")) == []
        assert await backend.delete("ann", "editor") is Deleted.ABSENT
        await backend.store("ann", "editor", "nano")
        assert [each.value for each in await backend.query("ann", "editor")] == ["nano"]


async def test_a_question_finds_what_fits_best_first_and_no_more_than_asked_for(keeping: Open) -> None:
    async with keeping() as backend:
        for number in range(15):
            await backend.store("ann", f"note-{number}", f"a remark on the garden, number {number}")
        await backend.store("ann", "deploy", "releases go out on Tuesday from the staging host")
        found = await backend.query("ann", "staging host on which day do releases go out?")
        assert found[0].key == "deploy"
        assert len(await backend.query("ann", "garden remark")) == 10
        assert len(await backend.query("ann", "garden remark", 3)) == 3
        assert list(await backend.query("ann", "garden remark", 0)) == []


async def test_signs_between_words_hide_nothing(keeping: Open) -> None:
    async with keeping() as backend:
        await backend.store("ann", "host-12", "ssh deploy@heron.example.test:/srv/site_v2 -p 2202, since 3.5")
        for text in ("host 12", "heron", "heron.example.test", "srv/site", "2202", "v2"):
            assert [memo.key for memo in await backend.query("ann", text)] == ["host-12"], text


QUERIES = ['"', "a OR b", "NOT", "key:*", "'; DROP TABLE memos; --", "& | ! ( :*", "\\", "%s {}", "🎉", "-"]


async def test_no_question_is_taken_for_a_language_of_queries(each: Open) -> None:
    async with each() as backend:
        await backend.store("ann", "editor", "vim")
        expected = list(await backend.list_keys("ann"))
        for text in QUERIES:
            found = await backend.query("ann", f"{text} vim {text}")
            assert [memo.key for memo in found] == expected, text
            await backend.query("ann", text)


async def test_any_script_is_kept_and_hidden_letters_become_visible(keeping: Open) -> None:
    async with keeping() as backend:
        for key, value in (
            ("名前", "東京に住んでいます"),
            ("شهر", "من در تهران زندگی می‌کنم"),
            ("fam", "👨‍👩‍👧"),
        ):
            await backend.store("ann", key, value)
            memo = await backend.retrieve("ann", key)
            assert memo is not None
            assert memo.value == value
        memo = await backend.store("ann", "odd", "a\u202eb\x00c\ud800")
        assert "\u202e" not in memo.value
        assert "\x00" not in memo.value
        assert memo == await backend.retrieve("ann", "odd")


async def test_writers_at_once_leave_one_memo_a_key(keeping: Open) -> None:
    async with keeping() as backend:
        await asyncio.gather(*(backend.store("ann", f"k{n % 5}", f"value {n}") for n in range(20)))
        assert sorted(await backend.list_keys("ann")) == [f"k{n}" for n in range(5)]


async def test_of_two_users_canaries_none_is_in_an_answer_to_the_other(
    each: Open, tier: Tier, figures: Figures
) -> None:
    """Every method, with the other's keys and words."""
    count = tier.size(short=20, full=500)
    users = ("ann", "bob")
    tried = leaked = 0
    async with each() as backend:
        for number in range(count):
            for user in users:
                await backend.store(user, f"key-{number}", f"canary{user}{number} likes tea")
        for number in range(count):
            for user, other in (users, users[::-1]):
                answers = [
                    *(await backend.query(user, f"canary{other}{number} likes tea", 50)),
                    await backend.retrieve(user, f"key-{number}"),
                ]
                tried += 2
                leaked += sum(f"canary{other}" in memo.value for memo in answers if memo)
                leaked += sum(memo.user_id != user for memo in answers if memo)
        assert await backend.delete("carl", "key-0") is Deleted.ABSENT
        assert not await backend.list_keys("carl")
        figures(f"canaries of two users, {backend.name}: {tried} questions tried, {leaked} foreign answers")
        assert leaked == 0
        if backend.name != "null":
            assert len(await backend.list_keys("ann", 1_000)) == count


async def test_a_backend_that_is_closed_or_gone_says_so_in_our_words(keeping: Open) -> None:
    async with keeping() as backend:
        await backend.store("ann", "editor", "vim")
    if backend.name != "postgres":  # which connects again
        with pytest.raises(BackendError):
            await backend.store("ann", "editor", "vim")
