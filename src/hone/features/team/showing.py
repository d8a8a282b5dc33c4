"""Print what is shown before something is shared, and what the team's ledger says."""

from collections.abc import Iterator
from typing import Any

from hone.cli.output import day, moment
from hone.core.knowledge import SharedKnowledge, SharedLesson, SharedSkill
from hone.core.ledger import ChangeKind, ChangeState, Entry
from hone.core.visible import one_line, visible
from hone.features.team.values import ShareReport, TeamProposal, may_undo
from hone.knowledge.descriptions import DescribedChange
from hone.prompt.shared import skill_line

DEEDS = {ChangeKind.APPROVE: "approved", ChangeKind.REJECT: "rejected", ChangeKind.UNDO: "undone"}


def describe_shown(shown: ShareReport) -> Iterator[str]:
    """Yield all of the text, then what it would reveal, each with its place."""
    for file, text in shown.readable.items():
        if file:
            yield f"{shown.skill}/{visible(file)}"
        yield from (f"  {line}".rstrip() for line in visible(text).rstrip("\n").split("\n"))
    yield ""
    if shown.exposures:
        yield "Look at this before others read it (line:column):"
        width = max(len(each.kind) for each in shown.exposures)
        for each in shown.exposures:
            yield f"  {each.kind:<{width}}  {one_line(each.text, 100)}  at {each.place}"
    else:
        yield "No names, addresses, paths, hosts or private matters were found. Read it all the same."
    yield from (f"  {each}" for each in shown.remarks)


def describe_proposal(proposal: TeamProposal) -> Iterator[str]:
    why = f": {one_line(proposal.reason, 300)}" if proposal.reason else ""
    what = f"the skill {proposal.shown.skill}" if proposal.shown.skill else "an entry"
    who = one_line(proposal.sharer, 64)
    yield f"team {proposal.change}  {who} proposes {what}, {moment(proposal.at)}{why}"
    yield from describe_shown(proposal.shown)


def describe_shared(known: SharedKnowledge) -> Iterator[str]:
    for each in known.entries:
        first, *rest = visible(each.text).split("\n")
        yield f"team {each.change}  {first}"
        yield from (f"    {line}" for line in rest)
        yield f"    shared by {one_line(each.sharer, 64)}, approved by {one_line(each.approver, 64)}"
    for skill in known.skills:
        yield f"team {skill.change}  {skill_line(skill)}"
        yield f"    shared by {one_line(skill.sharer, 64)}, approved by {one_line(skill.approver, 64)}"
    if not known.entries and not known.skills:
        yield "Your team shares nothing yet. Propose something with: hone team propose ENTRY"


def describe_log(change: DescribedChange) -> str:
    """Return one change of the team's ledger on one line."""
    entry, author = change.entry, change.entry.change.author
    deed = DEEDS.get(entry.change.kind, "proposed")
    state = f" ({change.fate})" if change.fate else ""
    why = f": {one_line(author.reason, 200)}" if author.reason else ""
    words = one_line(change.words, 200)
    return f"team {entry.id}  {day(entry.at)}  {deed} by {one_line(author.name, 64)}{why}  {words}{state}"


def shown_data(shown: ShareReport) -> dict[str, Any]:
    """Return it for programs."""
    return {
        "skill": shown.skill or None,
        "texts": dict(shown.readable),
        "exposures": [
            {"kind": each.kind, "text": each.text, "place": each.place} for each in shown.exposures
        ],
        "remarks": list(shown.remarks),
        "refused": bool(shown.secrets),
        "seal": shown.seal,
    }


def proposal_data(proposal: TeamProposal, me: str) -> dict[str, Any]:
    return {
        "change": proposal.change,
        "at": proposal.at.isoformat(),
        "sharer": proposal.sharer,
        "mine": proposal.sharer == me,
        "reason": proposal.reason,
        **shown_data(proposal.shown),
    }


def shared_data(known: SharedKnowledge, me: str) -> dict[str, Any]:
    def told(each: SharedLesson | SharedSkill) -> dict[str, Any]:
        undoable = may_undo(me, each.sharer, each.approver)
        return {"sharer": each.sharer, "approver": each.approver, "undoable": undoable}

    return {
        "entries": [{"change": each.change, "text": each.text, **told(each)} for each in known.entries],
        "skills": [
            {"change": each.change, "name": each.name, "description": each.description, **told(each)}
            for each in known.skills
        ],
    }


def log_data(change: DescribedChange) -> dict[str, Any]:
    entry: Entry = change.entry
    return {
        "change": entry.id,
        "at": entry.at.isoformat(),
        "deed": DEEDS.get(entry.change.kind, "proposed"),
        "by": entry.change.author.name,
        "reason": entry.change.author.reason,
        "target": entry.change.target,
        "about": entry.change.about,
        "words": change.words,
        "waits": entry.change.standing is ChangeState.PENDING and not entry.settled,
        "fate": change.fate,
    }
