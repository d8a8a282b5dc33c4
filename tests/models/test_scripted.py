"""The scripted model as an object: what it says follows from the conversation alone."""

import json
from pathlib import Path

import pytest

from hone.core.clock import ManualClock
from hone.core.errors import SettingsError
from hone.core.messages import Message, Thinking, ToolCall, answer, assistant, user
from hone.core.model import Finish, Reply, TextPiece, ThinkingPiece, Usage
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.models.scripted import Scripted, call, echo, lines, load, rounds, rules, say

PREFIX = Prefix("scripted/one", "You are a test.")


def transcript(*messages: Message, prefix: Prefix = PREFIX) -> Transcript:
    spoken = Transcript(prefix.digest)
    for message in messages:
        spoken = spoken.then(message, Trust.OWNER, ManualClock().now())
    return spoken


async def ask(model: Scripted, spoken: Transcript, prefix: Prefix = PREFIX) -> list[object]:
    return [piece async for piece in model.stream(prefix, spoken)]


def last(pieces: list[object]) -> Reply:
    assert isinstance(pieces[-1], Reply)
    return pieces[-1]


def test_lines_follow_the_number_of_replies_and_the_last_one_repeats() -> None:
    script = lines("one", assistant("two"), Reply(assistant("three"), Finish.LENGTH))
    said = [user("a")]
    heard = []
    for _ in range(4):
        reply = say(script, said)
        heard.append((reply.message.text, reply.finish))
        said += [reply.message, user("b")]
    long = Finish.LENGTH
    assert heard == [("one", Finish.DONE), ("two", Finish.DONE), ("three", long), ("three", long)]
    assert say(script, [user("a")]).message.text == "one"


def test_rounds_begin_anew_with_each_word_of_the_user() -> None:
    look = call("read_file", path="a")
    script = rounds(assistant(look), "done")
    first = [user("go"), assistant(look), answer(look, "text")]
    assert say(script, first[:1]).finish is Finish.CALLS
    assert say(script, first).message.text == "done"
    assert say(script, [*first, assistant("done"), user("again")]).message.calls != ()


def test_rules_go_by_the_last_words_of_the_user() -> None:
    script = rules(("weather", lines("Rain.")), ("time", lines("Late.")), otherwise=echo)
    assert say(script, [user("The time?"), assistant("Late."), user("WEATHER")]).message.text == "Rain."
    assert say(script, [user("The weather?"), assistant("Rain."), user("time")]).message.text == "Late."
    assert "scripted" in say(script, [user("hm")]).message.text


def test_a_call_has_the_same_id_everywhere_but_never_twice_in_one_conversation() -> None:
    look = call("read_file", path="a")
    assert look == call("read_file", path="a")
    assert look.id != call("read_file", path="b").id
    script = lines(assistant(look, look))
    said = [user("go")]
    for _ in range(3):
        said.append(say(script, said).message)
    ids = [each.id for message in said for each in message.calls]
    assert len(ids) == 6
    assert len(set(ids)) == 6
    assert ids[0] == look.id


def test_an_id_that_the_script_chose_is_played_as_it_stands() -> None:
    twice = assistant(call("a", "same"), ToolCall("same", "b", "not json"))
    assert say(lines(twice), [user("x"), twice]).message == twice


async def test_the_stream_is_the_reply_in_words() -> None:
    message = assistant(Thinking("hm, let me see"), "Good  morning\nto you ", call("f", x=1))
    model = Scripted(lines(message))
    spoken = transcript(user("hi"))
    pieces = await ask(model, spoken)
    texts = [piece.text for piece in pieces if isinstance(piece, TextPiece)]
    thoughts = [piece.text for piece in pieces if isinstance(piece, ThinkingPiece)]
    assert ("".join(texts), "".join(thoughts)) == ("Good  morning\nto you ", "hm, let me see")
    assert len(texts) > 2
    assert last(pieces).message == message
    assert last(pieces).finish is Finish.CALLS
    assert model.calls == [(PREFIX, spoken)]


async def test_usage_counts_what_an_earlier_call_had_in_common() -> None:
    model = Scripted(lines("a longer answer", "another"))
    one = transcript(user("first question, of some length"))
    first = last(await ask(model, one))
    two = one.then(first.message, Trust.AGENT, ManualClock().now()).then(
        user("second"), Trust.OWNER, ManualClock().now()
    )
    second = last(await ask(model, two))
    fork = last(await ask(model, one.forked().then(user("fork"), Trust.OWNER, ManualClock().now())))
    new = last(await ask(model, transcript(user("something else"))))
    other = Prefix("scripted/one", "You are another test.")
    strange = last(await ask(model, transcript(user("first question"), prefix=other), other))
    assert first.usage.cached == 0 < first.usage.output
    assert second.usage.cached == fork.usage.cached == first.usage.input < second.usage.input
    assert new.usage.cached == len(PREFIX.encode()) // 4
    assert strange.usage.cached == 0


async def test_usage_that_the_script_gives_is_kept() -> None:
    usage = Usage(input=7, cached=3, output=2, cost=0.5)
    model = Scripted(lines(Reply(assistant("x"), usage=usage)))
    assert last(await ask(model, transcript(user("hi")))).usage == usage


def test_a_script_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    look = {"text": "I look.", "thinking": "hm", "calls": [{"name": "f", "arguments": {"name": 1, "id": 2}}]}
    path.write_text(json.dumps([look, {"text": "cut", "finish": "length"}]))
    script = load(str(path))
    first = say(script, [user("go")])
    assert first.message == assistant(Thinking("hm"), "I look.", call("f", **{"name": 1, "id": 2}))
    assert first.finish is Finish.CALLS
    assert say(script, [user("go"), first.message]).finish is Finish.LENGTH
    path.write_text(json.dumps({"rounds": [look, {"text": "done"}]}))
    assert say(load(str(path)), [user("go"), assistant("x"), user("again")]).message.calls != ()


@pytest.mark.parametrize("text", ["", "[", "[]", '[{"texts":"x"}]', '{"rounds":3}', '[{"calls":[{}]}]'])
def test_a_script_that_cannot_be_used_is_said_in_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match="cannot be used"):
        load(str(path))
    with pytest.raises(SettingsError, match="cannot be used"):
        load(str(tmp_path / "absent"))
