"""Decide which changes are recorded and which become active.

The decision depends on the trust of the sources. Suspicious wording is only a hint.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from hone.core.errors import Refused
from hone.core.ledger import Actor, Author, ChangeState
from hone.core.screen import find_new, screen
from hone.core.trust import Trust, lowest
from hone.core.value import replace
from hone.knowledge import journal
from hone.knowledge.cues import takes_back
from hone.knowledge.quoting import quotes
from hone.knowledge.resemblance import is_same_subject
from hone.knowledge.skills import folder
from hone.knowledge.verdicts import LearningMode, Verdict

Edit = TypeVar("Edit", bound=journal.Edit | folder.Edit)

_WORDS = ("text", "replace", "content")
"""The fields of an edit that hold new words."""
NOTHING: Mapping[str, Sequence[str]] = MappingProxyType({})
Quoted = Callable[[str, Sequence[str]], bool]

FOREIGN = "it rests on foreign text"
TRUSTED = "what it rests on is trusted by now"
BROUGHT = "it was brought in from elsewhere"
ASKED = "the user wants to be asked"
MEASURED = "an experiment only proposes"
PROPOSED = "another agent proposes it"
SECOND = "a second person must approve it"
FAULTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""Errors that comparing texts may raise. In that case nothing counts as the owner's word."""


def judge(
    author: Author,
    mode: LearningMode,
    *,
    entries: Sequence[str] | None,
    gone: Mapping[str, Sequence[str]] = NOTHING,
    flags: Sequence[str] = (),
    scripts: bool = False,
    quoted: Quoted = quotes,
) -> Verdict:
    """Decide whether a change takes effect or is pending. `entries` are the new journal entries; None for a
    change of a skill, which no quote can cover. `gone` are the entries removed, each with what the owner has
    said since it was added. What the owner adds without having said it, as with an import, waits to be read;
    so do proposals of an experiment, a client or a team member. Raises Refused if the actor may not make the
    change, or if it rests on nothing."""
    if author.actor is Actor.OWNER and author.trust_floor is Trust.OWNER:
        return Verdict(ChangeState.ACTIVE, confirmed=True)
    if author.actor is Actor.OWNER:
        return Verdict(ChangeState.PENDING, cause="; ".join((BROUGHT, *flags)))
    if author.actor is Actor.EXPERIMENT:
        return Verdict(ChangeState.PENDING, cause="; ".join((MEASURED, *flags)))
    if author.actor is Actor.MEMBER:
        return Verdict(ChangeState.PENDING, cause="; ".join((SECOND, *flags)))
    if mode is LearningMode.OFF:
        raise Refused(f"The user has switched off changes by the {author.actor}; nothing was changed.")
    if author.actor is Actor.CLIENT:
        return Verdict(ChangeState.PENDING, cause="; ".join((PROPOSED, *flags)))
    if not author.evidence:
        raise Refused("Cite the evidence: quote words from this conversation, or give message numbers.")
    try:
        owners = not (flags or scripts) and _is_owners_word(author, entries, gone, quoted)
        cause, confirmed = _weigh(author, flags, scripts=scripts, owners=owners)
    except FAULTS as error:
        cause, confirmed = f"it could not be judged ({type(error).__name__})", False
    if mode is not LearningMode.AUTO:
        cause = cause or ASKED
    return Verdict(ChangeState.PENDING, cause=cause) if cause else Verdict(ChangeState.ACTIVE, confirmed)


def confirm_quoted(verdict: Verdict, added: Sequence[str], author: Author) -> Verdict:
    """Return the verdict on a change of a skill, confirmed if everything it adds is in the owner's own words.
    It decides nothing else: a pending change stays pending."""
    if verdict.standing is not ChangeState.ACTIVE or not (added and author.quotes):
        return verdict
    try:
        own = all(quotes(line, author.quotes) for line in added)
    except FAULTS:
        own = False
    return replace(verdict, confirmed=verdict.confirmed or own)


def defer(verdict: Verdict, cause: str) -> Verdict:
    """Make a change pending for a cause, if there is one."""
    waits = cause and verdict.standing is ChangeState.ACTIVE
    return Verdict(ChangeState.PENDING, cause=cause) if waits else verdict


def stricter(one: LearningMode, other: LearningMode) -> LearningMode:
    return max(one, other, key=list(LearningMode).index)


def judge_routine(author: Author, mode: LearningMode) -> Verdict:
    """Judge a change that follows from counting and brings no words: only the mode decides. Raises Refused if
    it is off."""
    if mode is LearningMode.OFF:
        raise Refused(f"The user has switched off changes by the {author.actor}; nothing was changed.")
    return (
        Verdict(ChangeState.PENDING, cause=ASKED) if mode is LearningMode.ASK else Verdict(ChangeState.ACTIVE)
    )


def _is_owners_word(
    author: Author, entries: Sequence[str] | None, gone: Mapping[str, Sequence[str]], quoted: Quoted
) -> bool:
    """Tell whether a change only does what the owner said: every new entry is in the owner's words, and so is
    the reason why every other entry goes."""
    if entries is None or not (entries or gone):
        return False
    covered = author.quotes and all(quoted(entry, author.quotes) for entry in entries)
    return bool(covered) and all(_may_go(entry, since, entries, quoted) for entry, since in gone.items())


def _may_go(entry: str, since: Sequence[str], entries: Sequence[str], quoted: Quoted) -> bool:
    """Tell whether an entry may go: the owner took it back, or said something else about the same subject.
    Statements about other subjects remove nothing."""
    if takes_back(entry, since):
        return True
    return any(is_same_subject(entry, new) and quoted(new, since) for new in entries)


def _weigh(author: Author, flags: Sequence[str], *, scripts: bool, owners: bool) -> tuple[str, bool]:
    """Return why it must wait, or nothing, and whether it only says what the owner said."""
    if flags:
        return "; ".join(flags), False
    if scripts:
        return "it brings or changes a script", False
    if owners:
        return "", True
    if lowest((author.trust_floor, *(each.trust for each in author.evidence))) >= Trust.LOCAL:
        return "", False
    return FOREIGN, False


def clean(edit: Edit) -> tuple[Edit, Sequence[str]]:
    """Return the edit with its words in canonical form, and what is odd about them. Anything but text stays
    as it is."""
    for name in _WORDS:
        value = getattr(edit, name, None)
        text = _text(value) if isinstance(value, bytes) else value
        if text is not None:
            found = screen(text)
            words: dict[str, Any] = {name: found.text.encode() if isinstance(value, bytes) else found.text}
            return replace(edit, **words), found.flags
    return edit, ()


def check(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> Sequence[str]:
    """Return what is newly odd about the contents that an edit makes: words that say nothing alone may do so
    together. Raises Refused for a secret."""
    flags: list[str] = []
    for path, data in after.items():
        if path.startswith("@") or before.get(path) == data:
            continue
        secrets, odd = find_new(*(_text(each) or "" for each in (before.get(path, b""), data)))
        if secrets:
            raise Refused(
                f"This holds what looks like a secret ({', '.join(sorted(secrets))}); nothing was changed. "
                "Write down where it is kept instead."
            )
        flags += odd
    return flags


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
