"""G1: what is special about Honcho: tombstones, its own answers, a service that fails in every way."""

import json
from typing import Any

import pytest

from hone.core.backend import Deleted
from hone.core.clock import ManualClock, SystemClock
from hone.core.errors import BackendError, Unfit
from hone.features.backends.evaluation import measure
from hone.features.backends.guarded import GuardedBackend
from hone.features.backends.honcho import HonchoBackend
from tests.backing import closing, honcho
from tests.conftest import Figures
from tests.doubles.honcho import KEY, Answer, HonchoDouble
from tests.doubles.honcho_probe import ANSWERS, probe

FAULTS = [
    pytest.param(Answer(401, {"detail": "Invalid authentication"}), "HONCHO_API_KEY", id="401"),
    pytest.param(Answer(403, {"detail": "Forbidden"}), "HONCHO_API_KEY", id="403"),
    pytest.param(Answer(404, {"detail": "Workspace not found"}), "(404)", id="404"),
    pytest.param(Answer(422, {"detail": [{"msg": "no"}]}), "does not take this (422)", id="422"),
    pytest.param(Answer(429, {"detail": "slow down"}, {"retry-after": "30"}), "patience (429)", id="429"),
    pytest.param(Answer(500, {"detail": "oops"}), "(500)", id="500"),
    pytest.param(Answer(502, b"<html>Bad Gateway</html>"), "(502)", id="502 as a page"),
    pytest.param(Answer(503, b""), "(503)", id="503 without a body"),
    pytest.param(Answer(200, b"this is no JSON"), "reached", id="nonsense"),
    pytest.param(Answer(200, {"items": [{"id": 1}]}), "does not understand", id="another shape"),
]


@pytest.mark.parametrize(("fault", "words"), FAULTS)
async def test_each_fault_of_the_service_is_one_plain_error_at_once_and_the_next_call_works(
    fault: Answer, words: str
) -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        assert await backend.available()
        await backend.store("ann", "editor", "vim")
        before = len(double.seen)
        double.faults.append(fault)
        with pytest.raises(BackendError) as caught:
            await backend.store("ann", "editor", "nano")
        assert words in str(caught.value)
        assert isinstance(caught.value, Unfit) == (fault.status == 422)
        assert len(double.seen) == before + 1  # it was not tried again while somebody waits
        await backend.store("ann", "editor", "nano")
        memo = await backend.retrieve("ann", "editor")
        assert memo is not None
        assert memo.value == "nano"


async def test_the_double_answers_as_a_real_server_did() -> None:
    """Which messages a query finds, filters, pages, and what is refused."""
    async with HonchoDouble() as double:
        assert await probe(double.url, KEY) == json.loads(ANSWERS.read_text(encoding="utf-8"))


async def test_a_question_is_asked_without_signs_all_words_together_and_each_alone() -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "deploy/host", "The staging host is called heron.")
        before = len(double.seen)
        [memo] = await backend.query("ann", "What's the staging-host for deployments called?!")
        assert memo.key == "deploy/host"
        asked = {json.loads(each.body)["query"] for each in double.seen[before:]}
        assert asked == {"what s the staging host for deployments called", "deploy", "called", "stag", "host"}


async def test_the_bundled_questions_are_answered_by_the_search_of_a_real_server(figures: Figures) -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        seen = await measure(backend, SystemClock())
    figures(f"bundled questions on Honcho's text search: {seen.recall * 12:.0f} of 12 found")
    assert seen.recall == 1.0


async def test_a_wrong_key_and_a_hung_socket_make_it_unavailable_with_a_reason() -> None:
    async with HonchoDouble() as double:
        async with closing(honcho(double, key="wrong")) as backend:
            found = await backend.available()
            assert not found
            assert "HONCHO_API_KEY" in found.why
        double.hung = True
        slow = HonchoBackend(double.url, KEY, ManualClock(), is_cloud=True, patience=0.05)
        async with closing(slow) as backend:
            found = await backend.available()
            assert not found
            assert "timed out" in found.why


async def test_what_is_deleted_is_hidden_and_the_service_keeps_it() -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "editor", "vim")
        assert await backend.delete("ann", "editor") is Deleted.HIDDEN
        kept = double.workspaces["hone"].messages["hone-memory-ann"]
        assert [each["metadata"]["state"] for each in kept] == ["old", "deleted"]
        assert kept[0]["content"] == "editor: vim"
        assert "vim" not in kept[1]["content"]


async def test_a_memo_is_a_message_with_key_and_value_in_its_metadata() -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "editor", "vim", {"change": "7"})
        [message] = double.workspaces["hone"].messages["hone-memory-ann"]
        told = message["metadata"]
        assert (message["peer_id"], told["key"], told["value"]) == ("ann", "editor", "vim")
        assert told["metadata"] == {"change": "7"}


async def test_a_dialectic_question_is_answered_by_the_service_itself() -> None:
    async with HonchoDouble(dialectic="Ann likes tea.") as double, closing(honcho(double)) as backend:
        [memo] = await backend.query("ann", "what does she like?", dialectic=True)
        assert (memo.value, memo.user_id) == ("Ann likes tea.", "ann")
        assert double.seen[-1].path == "/v3/workspaces/hone/peers/ann/chat"
        assert json.loads(double.seen[-1].body)["query"] == "what does she like?"


async def test_a_store_that_was_cut_before_the_old_message_was_marked_still_gives_the_new_one() -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "editor", "vim")
        double.lying = fail_updates
        with pytest.raises(BackendError):
            await backend.store("ann", "editor", "vim or nano")
        double.lying = None
        memo = await backend.retrieve("ann", "editor")
        assert memo is not None
        assert memo.value == "vim or nano"
        assert [each.value for each in await backend.query("ann", "vim")] == ["vim or nano"]
        assert list(await backend.list_keys("ann")) == ["editor"]


def fail_updates(body: Any) -> Any:
    """An update answers with the message itself, every other call with something else."""
    return {} if isinstance(body, dict) and "content" in body else body


def another_users(body: Any) -> Any:
    if isinstance(body, list):
        return [{**each, "peer_id": "bob"} for each in body]
    return (
        {**body, "items": [{**each, "peer_id": "bob"} for each in body["items"]]} if "items" in body else body
    )


def other_types(body: Any) -> Any:
    if isinstance(body, list):
        return [{**each, "metadata": {**each["metadata"], "value": ["no", "text"]}} for each in body]
    return body


@pytest.mark.parametrize(("lie", "words"), [(another_users, "another user"), (other_types, "no memo")])
async def test_a_service_that_lies_is_not_believed(lie: Any, words: str) -> None:
    async with HonchoDouble() as double, closing(honcho(double)) as backend:
        await backend.store("ann", "editor", "vim")
        double.lying = lie
        with pytest.raises(BackendError, match=words):
            await backend.query("ann", "vim")


async def test_an_sdk_that_is_not_installed_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "honcho", None)
    backend = GuardedBackend(HonchoBackend("", "", ManualClock(), is_cloud=True))
    found = await backend.available()
    assert "pip install 'hone-agent[honcho]'" in found.why
