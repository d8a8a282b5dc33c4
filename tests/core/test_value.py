"""A value of ours behaves like one that the standard decorator made."""

import dataclasses
import pickle
from collections.abc import Callable
from copy import copy, deepcopy
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import partial
from typing import Any

import pytest

from hone.core.messages import user
from hone.core.value import dataclass


def shape(decorator: Callable[..., Any]) -> Any:
    class Shape:
        """A word about it."""

        name: str
        count: int = 3
        secret: str = field(default="", repr=False)
        marks: tuple[int, ...] = field(default_factory=tuple)
        loud: bool = field(default=False, kw_only=True)
        length: int = field(init=False, compare=False)
        kind: str = field(init=False, default="plain")
        seen: dict[str, int] = field(init=False, default_factory=dict, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "length", len(self.name))

        def twice(self) -> int:
            return self.count * 2

    return decorator(frozen=True, slots=True)(Shape)


OURS, THEIRS = shape(dataclass), shape(dataclasses.dataclass)
CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    (("a",), {}),
    (("a", 4, "s", (9,)), {"loud": True}),
    ((), {"name": "b", "marks": ()}),
    ((), {}),
    (("a",), {"length": 1}),
    (("a", 1, "", (), True), {}),
    (("a",), {"name": "b"}),
]


def told(act: Callable[[], Any]) -> tuple[type, Any]:
    """What came of it, errors with their words too."""
    try:
        found = act()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)
    return type(found), repr(found)


@pytest.mark.parametrize(("args", "named"), CALLS)
def test_it_is_made_shown_replaced_and_taken_apart_alike(args: Any, named: Any) -> None:
    for act in (
        lambda made: repr(made(*args, **named)),
        lambda made: asdict(made(*args, **named)),
        lambda made: repr(replace(made(*args, **named), count=7)),
        lambda made: hash(made(*args, **named)),
        lambda made: made(*args, **named) == made(*args, **named),
        lambda made: made(*args, **named) == made("other"),
        lambda made: made(*args, **named) == 1,
        lambda made: repr(deepcopy(made(*args, **named))),
        lambda made: made(*args, **named).twice(),
        lambda made: setattr(made(*args, **named), "count", 1),
        lambda made: delattr(made(*args, **named), "count"),
        lambda made: made(*args, **named).__dict__,
    ):
        assert told(partial(act, OURS)) == told(partial(act, THEIRS))


def test_the_class_says_the_same_of_itself() -> None:
    for name in ("__doc__", "__slots__", "__match_args__", "__qualname__", "__module__"):
        assert getattr(OURS, name) == getattr(THEIRS, name)
    assert [str(each) for each in fields(OURS)] == [str(each) for each in fields(THEIRS)]


def test_nothing_can_be_changed() -> None:
    value = OURS("a")
    with pytest.raises(FrozenInstanceError):
        value.name = "b"
    with pytest.raises(FrozenInstanceError):
        del value.name
    assert value.name == "a"


def test_it_can_be_copied_and_pickled() -> None:
    message = user("hello")
    assert copy(message) == deepcopy(message) == pickle.loads(pickle.dumps(message)) == message


def test_a_method_that_is_written_out_is_kept() -> None:
    @dataclass(frozen=True, slots=True)
    class Quiet:
        key: str

        def __repr__(self) -> str:
            return "Quiet(…)"

    assert repr(Quiet("x")) == "Quiet(…)"


def test_other_options_are_those_of_the_standard_library() -> None:
    @dataclass(slots=True)
    class Tally:
        count: int = 0

    tally = Tally()
    tally.count += 1
    assert tally == Tally(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(tally)
