"""How a conversation went in which a skill was used: judged by what is there, not by what anybody claims."""

from collections.abc import Iterable, Sequence

from hone.core.ledger import Entry, skill
from hone.core.messages import Message, Role
from hone.core.skill import SkillResult
from hone.core.trust import Trust


def result(name: str, messages: Sequence[Message], entries: Iterable[Entry]) -> SkillResult:
    """`entries` are what a review of these messages made. It says that a skill was corrected by changing it
    on the user's own words."""
    changed = (entry.change for entry in entries if entry.change.target == skill(name))
    if any(each.trust is Trust.OWNER for change in changed for each in change.author.evidence):
        return SkillResult.CORRECTED
    last = _last_results(messages)
    return SkillResult.SUCCEEDED if last and not any(last) else SkillResult.UNKNOWN


def _last_results(messages: Sequence[Message]) -> list[bool]:
    """Whether each call of the last reply that made some has failed."""
    failed: list[bool] = []
    for message in reversed(messages):
        if message.result:
            failed.append(message.result.failed)
        elif failed and message.role is Role.ASSISTANT:
            break
    return failed
