"""What a model could send instead of a reply: valid streams that were bent, cut, mixed up, or never valid."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from hone.core.messages import Message, Part, Role, Text, Thinking, ToolCall
from hone.core.model import Finish, Reply, Usage
from hone.models.fake_provider.playback import Framing, stream, whole
from hone.models.fake_provider.shapes import Format
from tests.faults.oddities import ARGUMENTS, DEEP, DEEP_MARK, EVENTS, IDS, NAMES, TEXTS, VALUES


@dataclass(frozen=True)
class Output:
    """`media_type` is json for a server that does not stream; `status` other than 200 for a refusal."""

    kind: str
    body: bytes
    media_type: str = "text/event-stream"
    status: int = 200


def make(random: Random, format: Format) -> Output:
    kind, maker = random.choices(list(_MAKERS.items()), [3, 3, 3, 3, 1, 1, 1])[0]
    output = maker(random, format)
    return Output(kind, output) if isinstance(output, bytes) else output


def sample(random: Random, *, odd: bool) -> Reply:
    """A reply; an odd one is framed as a provider would, but no model should have said it."""
    parts: list[Part] = []
    if random.random() < 0.3:
        parts.append(Thinking(random.choice(TEXTS) if odd else "I think, therefore I stream."))
    if random.random() < 0.6:
        parts.append(Text(random.choice(TEXTS) if odd else "Let me look at that for you."))
    count = random.choice((0, 1, 1, 2, 4))
    parts += [_odd_call(random) if odd else _good_call(random, number) for number in range(count)]
    if odd:
        random.shuffle(parts)
    finish = random.choice(list(Finish)) if odd else Finish.CALLS if parts else Finish.DONE
    return Reply(Message(Role.ASSISTANT, tuple(parts)), finish, Usage(100, 50, 0, 20))


def _good_call(random: Random, number: int) -> ToolCall:
    name = random.choice(("read_file", "todo", "look", "change"))
    arguments = '{"path":"notes/of the day.md","offset":1}' if name == "read_file" else "{}"
    return ToolCall(f"call_{random.getrandbits(32):08x}{number}", name, arguments)


def _odd_call(random: Random) -> ToolCall:
    return ToolCall(random.choice(IDS), random.choice(NAMES), random.choice(ARGUMENTS))


def _events(random: Random, format: Format, *, odd: bool = False) -> list[bytes]:
    return [data for _, data in stream(format, sample(random, odd=odd), Framing("scripted"))]


def _calls(random: Random, format: Format) -> bytes:
    """Well-framed, but ids, names, arguments and texts are odd."""
    return b"".join(_events(random, format, odd=True))


def _values(random: Random, format: Format) -> bytes:
    """Some values in the events become others, or are gone."""
    events = _events(random, format, odd=random.random() < 0.2)
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(events))
        events[at] = _bent(random, events[at])
    return b"".join(events)


def _bent(random: Random, event: bytes) -> bytes:
    """The event with one value of its JSON replaced, removed, renamed or doubled."""
    before, colon, data = event.partition(b"data: ")
    try:
        root = [json.loads(data)]
    except (ValueError, RecursionError):
        return event
    holder, key = random.choice(list(_places(root)))
    action = random.randrange(5)
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, dict):
        holder[random.choice(("", "x", "type", "index", "delta", "error", "id"))] = holder.pop(key)
    elif action == 2:
        holder[key] = [holder[key]] * random.choice((1, 3))
    else:
        holder[key] = random.choice(VALUES)
    text = json.dumps(root, ensure_ascii=random.random() < 0.5, separators=(",", ":"))[1:-1]
    text = text.replace(f'"{DEEP_MARK}"', DEEP)
    return before + colon + text.encode("utf-8", "surrogatepass") + b"\n\n"


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value where another one could stand."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    found = [(value, key) for key in keys]
    for key in keys:
        found += _places(value[key])
    return found


def _bytes(random: Random, format: Format) -> bytes:
    """Some bytes are others, gone, or there twice."""
    data = bytearray(b"".join(_events(random, format)))
    for _ in range(random.choice((1, 2, 8, 50))):
        at, width = random.randrange(len(data) + 1), random.choice((1, 1, 3, 40))
        piece = bytes(data[at : at + width])
        change = random.randrange(4)
        new = (
            bytes(each ^ 1 << random.randrange(8) for each in piece),
            b"",
            piece * 2,
            random.randbytes(width),
        )
        data[at : at + width] = new[change]
    return bytes(data)


def _order(random: Random, format: Format) -> bytes:
    """Events are lost, doubled, moved, strange, or of the other provider."""
    events = _events(random, format)
    others = _events(random, "anthropic" if format == "openai" else "openai")
    for _ in range(random.choice((1, 2, 4, 10))):
        at = random.randrange(len(events) + 1)
        change = random.randrange(6)
        if change == 0:
            del events[at : at + random.choice((1, 3))]
        elif change == 1:
            events[at:at] = events[at : at + random.choice((1, 3))]
        elif change == 2:
            random.shuffle(events)
        elif change == 3:
            events.insert(at, random.choice(others))
        else:
            events.insert(at, random.choice(EVENTS))
    return b"".join(events)


def _garbage(random: Random, format: Format) -> bytes:
    noise = random.randbytes(random.choice((0, 1, 10, 1000, 20_000)))
    text = random.choice(
        ("", "Service", "<html><body>Hi</body></html>", DEEP, "data: ", "data: {", "\n" * 500)
    )
    return random.choice((noise, text.encode(), text.encode() + noise, noise.replace(b"\n", b"\n\ndata: ")))


def _unstreamed(random: Random, format: Format) -> Output:
    """One JSON body, as from a server that cannot stream, with a value or a byte bent."""
    odd = random.random() < 0.5
    body = whole(format, sample(random, odd=odd), Framing("scripted"))
    bent = _bent(random, b"data: " + body).removeprefix(b"data: ").rstrip() if random.random() < 0.7 else body
    cut = random.randrange(len(bent) + 1) if random.random() < 0.2 else len(bent)
    return Output("unstreamed", bent[:cut], "application/json")


def _refusal(random: Random, format: Format) -> Output:
    """A status with a body that nobody would expect."""
    status = random.choice((400, 401, 403, 404, 408, 413, 429, 500, 502, 503, 529))
    noise = random.randbytes(random.choice((0, 20, 3000)))
    message = json.dumps(
        {"error": {"message": random.choice((*TEXTS, *VALUES[:-1])), "type": random.choice(TEXTS)}}
    )
    shapes = (noise, message.encode(), b"<" * 70_000, b"a\nb\r\nc\x1b[31m\x00", b"[]", b"null", DEEP.encode())
    return Output(
        "refusal", random.choice(shapes), random.choice(("application/json", "text/html", "x")), status
    )


_MAKERS: dict[str, Callable[[Random, Format], bytes | Output]] = {
    "calls": _calls,
    "values": _values,
    "bytes": _bytes,
    "order": _order,
    "garbage": _garbage,
    "unstreamed": _unstreamed,
    "refusal": _refusal,
}
