"""Laws of the JSON-RPC peer: every request has its own reply, whoever asks, and no bytes break it."""

import asyncio
import json
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.rpc.channels import LineBuffer
from hone.rpc.messages import (
    BUSY,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    Call,
    ConnectionLost,
    MalformedMessage,
    RpcError,
    RpcReply,
    decode,
    encode_call,
    encode_fault,
    encode_result,
)
from hone.rpc.peer import Followed, Peer, PeerLimits, read_params
from tests.rpc.pairs import connected, running, script

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ids = st.integers(0, 2**53) | st.text(max_size=10)


class Echo:
    """Answers with what it was asked, sooner or later, and asks back where it is told to."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.heard: list[Any] = []
        self.cancelled: list[object] = []
        self.holding = asyncio.Event()
        self.following: list[asyncio.Future[None]] = []

    async def answer(self, call: Call) -> object:
        params: dict[str, Any] = read_params(call, dict[str, Any])
        match call.method:
            case "echo":
                for _ in range(params.get("delay", 0)):
                    await asyncio.sleep(0)
                return params["value"]
            case "ask back":
                assert self.peer
                return [json.loads(await self.peer.request("echo", {"value": params["value"]}))]
            case "hold":
                try:
                    await self.holding.wait()
                except asyncio.CancelledError:
                    self.cancelled.append(call.id)
                    raise
            case "fail":
                raise RpcError(-32042, "No.", params)
            case "break":
                raise ZeroDivisionError
            case "follow":
                assert self.peer
                tell = self.peer.notify("after", {"of": params["value"]})
                return Followed(params["value"], lambda: self.following.append(asyncio.ensure_future(tell)))
        raise RpcError(METHOD_NOT_FOUND, "There is no such method.")

    async def hear(self, call: Call) -> None:
        self.heard.append(json.loads(call.params))
        if call.method == "cancel" and self.peer:
            self.peer.cancel(json.loads(call.params)["id"], reply=False)


@given(st.lists(st.tuples(json_values, st.integers(0, 5), st.booleans()), max_size=12))
def test_every_request_gets_its_own_reply_in_both_directions_and_in_any_order(
    asked: list[tuple[Any, int, bool]],
) -> None:
    async def story() -> None:
        near, far = Echo(), Echo()
        async with connected(near, far) as (one, two):
            near.peer, far.peer = one, two

            async def ask(value: Any, delay: int, back: bool) -> Any:
                method = "ask back" if back else "echo"
                return json.loads(await one.request(method, {"value": value, "delay": delay}))

            answers = await asyncio.gather(*(ask(*each) for each in asked))
            assert answers == [[value] if back else value for value, _, back in asked]

    asyncio.run(story())


@given(st.text(max_size=30), json_values, ids)
def test_a_message_comes_back_as_it_went_in(method: str, value: Any, id: int | str) -> None:
    call = decode(encode_call(method, {"value": value}, id))
    assert isinstance(call, Call)
    assert (call.method, call.id, json.loads(call.params)) == (method, id, {"value": value})
    result = decode(encode_result(id, value))
    assert isinstance(result, RpcReply)
    assert result.result is not None
    assert (result.id, json.loads(result.result)) == (id, value)
    fault = decode(encode_fault(id, RpcError(-1, "why", value)))
    assert isinstance(fault, RpcReply)
    assert fault.fault
    assert (fault.fault.code, fault.fault.message) == (-1, "why")


odd = st.binary(max_size=40) | st.builds(
    msgspec.json.encode,
    st.dictionaries(
        st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "x"]), json_values
    ),
)


@given(st.lists(odd, max_size=20))
def test_no_bytes_raise_anything_but_malformed_or_end_a_peer_with_an_exception(messages: list[bytes]) -> None:
    for message in messages:
        with suppress(MalformedMessage):
            assert isinstance(decode(message), Call | RpcReply)

    async def story() -> None:
        channel = script([*messages, encode_call("echo", {"value": 7}, "last")])
        await Peer(channel, Echo(), reports_noise=True).run()
        assert all(isinstance(decode(sent), RpcReply) for sent in channel.sent)

    asyncio.run(story())


async def test_a_caller_that_is_cancelled_cancels_the_request_at_the_other_side() -> None:
    near, far = Echo(), Echo()
    async with connected(near, far) as (one, two):
        far.peer = two
        asking = asyncio.create_task(one.request("hold", {}))
        await asyncio.sleep(0)
        await one.request("echo", {"value": 1})
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await one.request("echo", {"value": 2})
        assert far.heard == [{"id": 1}]
        assert far.cancelled == [1]


async def test_what_the_other_side_refuses_is_raised_with_its_code_and_data() -> None:
    async with connected(Echo(), Echo()) as (one, _):
        with pytest.raises(RpcError, match=r"^No\.$") as refusal:
            await one.request("fail", {"why": 1})
        assert (refusal.value.code, refusal.value.data) == (-32042, {"why": 1})
        with pytest.raises(RpcError, match="do not fit") as misfit:
            await one.request("echo", [1])
        assert misfit.value.code == INVALID_PARAMS


async def test_a_handler_that_breaks_is_answered_for_and_the_next_request_works() -> None:
    async with connected(Echo(), Echo()) as (one, _):
        with pytest.raises(RpcError, match="ZeroDivisionError in break"):
            await one.request("break", {})
        assert await one.request("echo", {"value": 1}) == b"1"


async def test_what_follows_a_result_comes_after_it_and_a_request_begins_before_what_cancels_it() -> None:
    asked = [
        encode_call("follow", {"value": 7}, 1),
        encode_call("hold", {}, 2),
        encode_call("cancel", {"id": 2}),
    ]
    channel, far = script([*asked, encode_call("echo", {"value": 8}, 3)]), Echo()
    far.peer = Peer(channel, far)
    await far.peer.run()
    await asyncio.gather(*far.following)
    sent = [json.loads(each) for each in channel.sent]
    assert [each.get("id", each.get("method")) for each in sent[:2]] == [1, "after"]
    assert far.cancelled == [2]


async def test_a_crowd_of_requests_is_refused_beyond_the_limit_and_the_rest_is_answered() -> None:
    asked = [encode_call("hold", {}, number) for number in range(10)]
    channel = script(asked)
    await Peer(channel, Echo(), limits=PeerLimits(requests=4)).run()
    refused = [json.loads(sent)["id"] for sent in channel.sent if json.loads(sent)["error"]["code"] == BUSY]
    assert refused == [4, 5, 6, 7, 8, 9]


async def test_who_waits_learns_that_the_other_side_is_gone_and_who_asks_later_too() -> None:
    near, far = Echo(), Echo()
    async with connected(near, far) as (one, two):
        waiting = asyncio.create_task(one.request("hold", {}))
        await one.request("echo", {"value": 1})
        await two._channel.close()
        with pytest.raises(ConnectionLost, match="closed"):
            await waiting
        with pytest.raises(ConnectionLost):
            await one.request("echo", {"value": 1})


async def test_what_was_asked_before_the_end_is_answered_by_a_side_that_finishes() -> None:
    asked = [encode_call("echo", {"value": number, "delay": number}, number) for number in range(5)]
    channel = script(asked)
    await Peer(channel, Echo(), finishes=True).run()
    assert sorted(json.loads(sent)["result"] for sent in channel.sent) == [0, 1, 2, 3, 4]


async def test_noise_is_passed_over_until_it_is_too_much() -> None:
    few = script([b"starting up...", b"[1, 2", encode_result(1, "yes")])
    peer = Peer(few, limits=PeerLimits(noise=2))
    asking = asyncio.create_task(peer.request("x", {}))
    await asyncio.sleep(0)
    async with running(peer):
        assert await asking == b'"yes"'
    much = script([b"noise"] * 4 + [encode_result(1, "yes")])
    peer = Peer(much, limits=PeerLimits(noise=3))
    asking = asyncio.create_task(peer.request("x", {}))
    await asyncio.sleep(0)
    async with running(peer):
        with pytest.raises(ConnectionLost, match="no JSON-RPC"):
            await asking


@given(st.lists(st.binary(max_size=9).filter(lambda line: b"\n" not in line), max_size=9), st.data())
def test_lines_are_found_however_they_are_cut(lines: list[bytes], data: st.DataObject) -> None:
    whole, buffer, found = b"".join(line + b"\n" for line in lines), LineBuffer(9), list[bytes]()
    while whole:
        size = data.draw(st.integers(1, len(whole)))
        found += buffer.feed(whole[:size])
        whole = whole[size:]
    assert found == [line for line in lines if line.strip()]


def test_a_line_without_end_is_given_up_at_its_limit() -> None:
    buffer = LineBuffer(1_000)
    assert buffer.feed(b"x" * 1_000) == []
    with pytest.raises(ConnectionLost, match="longer than 1,000 bytes"):
        buffer.feed(b"x")
