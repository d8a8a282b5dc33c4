"""E7: a copy of a change says who wrote it, in which context and from where; empty fields are left out."""

import pytest

from hone.core.ids import SessionId
from hone.core.ledger import Actor, Author
from hone.knowledge.metadata import metadata


def test_a_review_names_all_there_is() -> None:
    author = Author(Actor.REVIEW, SessionId("r1"), SessionId("s1"), "memory", "call_7")
    assert metadata(author, task="job 3") == {
        "write_origin": "background_review",
        "execution_context": "background_review",
        "session_id": "r1",
        "parent_session_id": "s1",
        "platform": "cli",
        "tool_name": "memory",
        "task_id": "job 3",
        "tool_call_id": "call_7",
    }


@pytest.mark.parametrize(
    ("actor", "origin", "context"),
    [
        (Actor.OWNER, "owner", "foreground"),
        (Actor.AGENT, "assistant_tool", "foreground"),
        (Actor.CURATOR, "curator", "background_review"),
    ],
)
def test_what_is_empty_is_left_out(actor: Actor, origin: str, context: str) -> None:
    told = {"write_origin": origin, "execution_context": context, "platform": "cli"}
    assert metadata(Author(actor)) == told
    assert metadata(Author(actor, platform="serve")) == {**told, "platform": "serve"}
