"""The metadata that accompanies a copied change: its author, its context and its origin."""

from collections.abc import Mapping

from hone.core.ledger import Actor, Author

ORIGINS = {
    Actor.OWNER: "owner",
    Actor.AGENT: "assistant_tool",
    Actor.REVIEW: "background_review",
    Actor.CURATOR: "curator",
    Actor.EXPERIMENT: "experiment",
    Actor.CLIENT: "mcp_client",
    Actor.MEMBER: "team_member",
}


CLI = "cli"


def metadata(author: Author, task: str = "") -> Mapping[str, str]:
    """Return the metadata of a change, without empty fields."""
    background = author.actor in (Actor.REVIEW, Actor.CURATOR)
    fields = {
        "write_origin": ORIGINS[author.actor],
        "execution_context": "background_review" if background else "foreground",
        "session_id": author.session,
        "parent_session_id": author.parent,
        "platform": author.platform or CLI,
        "tool_name": author.tool,
        "task_id": task,
        "tool_call_id": author.call,
    }
    return {name: value for name, value in fields.items() if value}
