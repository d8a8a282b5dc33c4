"""Values are frozen and compare by content; a computed field follows what it is computed from."""

import pickle
from copy import copy, deepcopy
from datetime import UTC, datetime

import pytest

from hone.core.messages import Reminder, SystemNote, Text, assistant, user
from hone.core.permit import Effect, Permit
from hone.core.prefix import Prefix
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.value import replace
from hone.models.endpoint import Endpoint
from hone.models.http.route import Proxies, Proxy

AT = datetime(2026, 1, 2, tzinfo=UTC)


def test_nothing_can_be_changed() -> None:
    value = Text("a")
    with pytest.raises(AttributeError):
        setattr(value, "text", "b")  # noqa: B010
    with pytest.raises(AttributeError):
        delattr(value, "text")
    with pytest.raises(AttributeError):
        setattr(value, "other", "b")  # noqa: B010
    assert value == Text("a")


def test_values_of_equal_content_and_type_are_equal() -> None:
    effects = frozenset({Effect.READ})
    assert Permit(effects) == Permit(effects) != Permit()
    assert hash(Permit(effects)) == hash(Permit(effects))
    assert user("a") != assistant("a")
    assert len({Text("a"), SystemNote("a"), Text("a")}) == 2


def test_a_value_can_be_copied_and_pickled() -> None:
    for value in (user("hello"), Prefix("scripted/echo", "Be brief.", ('{"name":"x"}',))):
        assert copy(value) == deepcopy(value) == pickle.loads(pickle.dumps(value)) == value


def test_the_digest_of_a_prefix_is_always_that_of_its_content() -> None:
    prefix = Prefix("scripted/echo", "Be brief.")
    other = replace(prefix, system="Be kind.")
    assert other == Prefix("scripted/echo", "Be kind.")
    assert other.digest == Prefix("scripted/echo", "Be kind.").digest != prefix.digest
    assert Prefix("scripted/echo", "Be brief.", digest=other.digest).digest == prefix.digest


def test_the_trust_of_a_node_is_never_better_than_its_lowest_part() -> None:
    reminder = Reminder("a memory", "foreign")
    node = Node.make("", user(reminder, "hello"), Trust.OWNER, AT)
    assert node.trust_floor is Trust.FOREIGN
    assert replace(node, message=user("hello")).trust_floor is Trust.OWNER
    assert replace(node, trust_floor=Trust.OWNER).trust_floor is Trust.FOREIGN


def test_nodes_are_told_apart_by_identity() -> None:
    one, other = (Node.make("", user("hello"), Trust.OWNER, AT) for _ in range(2))
    assert one != other
    assert len({one, other}) == 2


def test_secrets_are_not_shown() -> None:
    secret = "sk-not-to-be-shown"
    for value in (
        Endpoint("openai", "https://example.org", {"authorization": secret}),
        Proxy(secure=True, host="proxy", port=8080, credentials=secret),
        Proxies(f"http://me:{secret}@proxy", f"http://me:{secret}@proxy"),
    ):
        assert secret not in repr(value)
