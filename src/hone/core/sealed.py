"""Values as JSON files: trust levels as words, times in ISO format, a digest that detects edits by hand."""

import json
from abc import ABC
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct

from hone.core.messages import canonical, digest
from hone.core.trust import Trust

if TYPE_CHECKING:
    TrustWord = Trust
else:

    class TrustWord(ABC):  # noqa: B024
        """A Trust that files hold as a word. It is a class because msgspec calls no hook for an enum."""

    TrustWord.register(Trust)

Value = TypeVar("Value", bound=Struct)


class Envelope(Struct):
    """The fields that a file adds to those of its value."""

    format: int
    digest: str = ""


def to_json(value: Any) -> Any:
    """Return what `json` can write; a value becomes a dict with the names used in its file."""
    match value:
        case Trust():
            return value.name.lower()
        case datetime():
            return value.isoformat()
        case tuple():
            return [to_json(each) for each in value]
        case Struct():
            names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
            return {shown: to_json(getattr(value, name)) for shown, name in names}
    return value


def from_json(value: Any, kind: type[Value], format: int) -> Value:
    """Return a value from JSON. Raises ValueError with half a sentence that says what is wrong."""
    try:
        found = msgspec.convert(value, Envelope).format
        if found != format:
            raise ValueError(f"it is of format {found}, and this Hone reads {format}")
        own = {name: each for name, each in value.items() if name not in Envelope.__struct_fields__}
        return msgspec.convert(own, kind, dec_hook=_trust)
    except msgspec.ValidationError as error:
        raise ValueError(str(error).rstrip(".")) from error
    except KeyError as error:
        raise ValueError(f"{str(error.args[0]).lower()!r} is no label of trust") from error


def _trust(_: type, word: object) -> Trust:
    return Trust[str(word).upper()]


def sealed(value: dict[str, Any]) -> bytes:
    """Return the bytes of a file with a digest of its content."""
    return (json.dumps(value | {"digest": seal(value)}, indent=1, ensure_ascii=False) + "\n").encode()


def seal(value: Any) -> str:
    return digest(canonical(value).encode())
