"""The agent's tools for what it knows: `memory`, `skills_list`, `skill_view`, `skill_manage`."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Struct

from hone.core.errors import AlreadyKnown, HoneError, Refused
from hone.core.ledger import (
    MEMORY,
    NO_SESSION,
    USER,
    Actor,
    Author,
    ChangeKind,
    ChangeState,
    Entry,
    Target,
    project,
)
from hone.core.permit import Effect
from hone.core.skill import ARCHIVED, DOCUMENT, FAILED, ListedSkill, SkillEvent, SkillOrigin
from hone.core.tool import Outcome, Tool
from hone.core.tool_context import ToolContext
from hone.core.transcript import Source
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.visible import one_line
from hone.knowledge import deferred, journal, places
from hone.knowledge.library import Library
from hone.knowledge.skills import folder
from hone.knowledge.skills.document import parse
from hone.tools.define import tool

ACTORS = {Origin.REVIEW: Actor.REVIEW, Origin.CURATOR: Actor.CURATOR}
SHOWN = 20
"""The most skills in a list."""
WIDTH = 160

Action = Literal["create", "create_anyway", "patch", "edit", "write_file", "remove_file", "archive"]
Part = Literal["memory", "user", "project"]
Proof = Annotated[list[str], "exact words from this conversation that support it, or message numbers like #7"]


class MemoryEdit(Struct, frozen=True):
    action: Literal["add", "add_anyway", "replace", "remove"]
    target: Part = "memory"
    text: str = ""
    match: str = ""


def knowledge_tools(library: Library, home: str, source: Source | None = None) -> list[Tool]:
    """Return the knowledge tools. `home` is the working folder, to which a project's entries belong. Without
    a source, a call rests on the conversation in which it is made."""
    return [
        memory_tool(library, home, source),
        *reading_tools(library),
        managing_tool(library, home, source),
    ]


def memory_tool(library: Library, home: str, source: Source | None) -> Tool:
    keeper = library.keeper
    targets = {"memory": MEMORY, "user": USER, "project": project(home)}

    @tool(effects={Effect.NOTE})
    async def memory(
        context: ToolContext,
        action: Literal["list", "add", "add_anyway", "replace", "remove", "batch"],
        evidence: Proof,
        target: Annotated[Part, "user: the person; project: this folder; memory: everything else"] = "memory",
        text: str = "",
        match: Annotated[str, "the entry to replace or remove, or a unique part of it"] = "",
        batch: Annotated[list[MemoryEdit] | None, "several changes, all or none"] = None,
        reason: str = "",
    ) -> Outcome:
        """Read or change the journal: short, lasting facts and preferences in the user's words."""
        if action == "list":
            return answer("\n\n".join([await _section(part) for part in targets]))
        items = batch or [] if action == "batch" else [MemoryEdit(action, target, text, match)]
        try:
            edits = [(targets[item.target], _edit(item)) for item in items]
            if not edits:
                raise Refused("A batch needs at least one change.")
            entries = await keeper.note(edits, author(context, evidence, reason, source))
        except HoneError as error:
            # A known entry needs nothing; it must not undo the rest of a batch.
            is_done = isinstance(error, AlreadyKnown) and len(items) == 1
            return answer(str(error)) if is_done else _refuse(error)
        texts = await keeper.texts_after(entries)
        sizes = [
            _size(each, texts[each] if each in texts else await keeper.text(each))
            for each in dict.fromkeys(target for target, _ in edits)
        ]
        instead = " It takes the place of an older entry." if _has_replaced(items, entries) else ""
        return answer(f"{_describe_recorded(entries)}{instead} {' '.join(sizes)}")

    async def _section(part: str) -> str:
        text = await keeper.text(targets[part])
        found = journal.entries(text)
        listed = "".join(journal.format_entry(entry) for entry in found) or "(empty)\n"
        return f"{_size(targets[part], text)}\n{listed}".rstrip()

    def _size(target: Target, text: str) -> str:
        name, used = places.name_of(target), journal.size(text)
        return f"{name}: {used:,} of {keeper.rules.limits[name]:,} characters."

    return memory


def _edit(item: MemoryEdit) -> journal.Edit:
    match item.action:
        case "add" | "add_anyway":
            return journal.Add(item.text, anyway=item.action == "add_anyway")
        case "replace":
            return journal.ReplaceEntry(item.match, item.text)
        case "remove":
            return journal.Remove(item.match or item.text)


def _has_replaced(items: Sequence[MemoryEdit], entries: Sequence[Entry]) -> bool:
    """Tell whether an addition replaced an entry that it contradicts."""
    return len(items) == 1 and items[0].action == "add" and entries[0].change.kind is not ChangeKind.ADD


def reading_tools(library: Library) -> list[Tool]:
    @tool(effects={Effect.SKILL}, readonly=True)
    async def skills_list(
        query: Annotated[str, "the task in a few words; empty: the most used skills"] = "",
    ) -> Outcome:
        """Search skills: proven ways to do a class of task."""
        try:
            found = await library.search(query, SHOWN)
        except HoneError as error:
            return _refuse(error)
        return answer("\n".join(map(line, found)) or "No skill matches.")

    @tool(effects={Effect.SKILL}, readonly=True)
    async def skill_view(
        context: ToolContext, name: str, file: Annotated[str, "a file that it lists"] = DOCUMENT
    ) -> Outcome:
        """Read a skill or one of its files."""
        try:
            files = await library.files(name)
            by_user = ACTORS.get(context.header.origin) is None
            if FAILED in files:
                raise Refused(f"{name} is switched off: its own check failed. Do the task without it.")
            if ARCHIVED in files and not (by_user and await library.wake(name)):
                raise Refused(f"{name} is archived. The user can restore it: hone skills restore {name}")
            if file not in files or file.startswith("@"):
                raise Refused(f"{name} has no file {one_line(file, 100)!r}. {_others(files)}")
            await _seen(context, name, file)
        except HoneError as error:
            return _refuse(error)
        more = f"\n\n{_others(files)}" if file == DOCUMENT and len(_paths(files)) > 1 else ""
        if more and (where := await library.lay_out(name, files)):
            more += f"\n{where}"
        try:
            return answer(files[file].decode() + more)
        except UnicodeDecodeError:
            return _refuse(Refused(f"{file} is not text ({len(files[file]):,} bytes)."))

    async def _seen(context: ToolContext, name: str, file: str) -> None:
        actor = ACTORS.get(context.header.origin, Actor.AGENT)
        await library.count(name, SkillEvent.VIEW, actor, context.header.id)
        if actor is Actor.AGENT and file == DOCUMENT:
            await library.count(name, SkillEvent.USE, actor, context.header.id)

    return [skills_list, skill_view]


def managing_tool(library: Library, home: str, source: Source | None) -> Tool:
    @tool(effects={Effect.SKILL})
    async def skill_manage(
        context: ToolContext,
        action: Action,
        name: Annotated[str, "a class of task, such as release-notes"],
        evidence: Proof,
        text: Annotated[str, "create, edit: the whole SKILL.md; otherwise the new text"] = "",
        find: Annotated[str, "patch: exact text that occurs once"] = "",
        file: Annotated[str, "in references/, templates/, scripts/ or assets/"] = "",
        reason: str = "",
    ) -> Outcome:
        """Save a procedure as a skill, or fix one. Patch an existing skill rather than create another."""
        try:
            if action == "create":
                await _compare(name, text)
            by = author(context, evidence, reason, source)
            origin = SkillOrigin.USER if deferred.cues.asks_to_keep(by.quotes) else SkillOrigin.AGENT
            edit = _skill_edit(action, file, text, find, home, origin)
            entry = await library.keeper.edit_skill(name, edit, by)
            if not isinstance(edit, folder.Create):
                await library.count(name, SkillEvent.PATCH, by.actor, context.header.id)
        except HoneError as error:
            return _refuse(error)
        return answer(_describe_recorded([entry]))

    async def _compare(name: str, text: str) -> None:
        near = await library.find_similar(name, parse(text).description)
        if near:
            raise Refused(_similar(near))

    return skill_manage


def _similar(near: Sequence[ListedSkill]) -> str:
    """Advise what to do about similar skills, but never to patch a pinned one."""
    free = [each for each in near if not each.pinned]
    listed = "\n".join(map(line, free or near))
    if free:
        return f"Not created: these are similar. Patch one of them, or use create_anyway.\n{listed}"
    return f"Not created: these are similar, and pinned. Use create_anyway for what they lack.\n{listed}"


def _skill_edit(
    action: Action, file: str, text: str, find: str, home: str, origin: SkillOrigin
) -> folder.Edit:
    match action:
        case "create" | "create_anyway":
            return folder.Create(text, origin, home)
        case "patch":
            return folder.Patch(find, text, file or DOCUMENT)
        case "edit":
            return folder.Rewrite(text)
        case "write_file":
            return folder.WriteFile(file, text.encode())
        case "remove_file":
            return folder.RemoveFile(file)
        case "archive":
            return folder.Archive()


def author(context: ToolContext, claims: Sequence[str], reason: str, source: Source | None) -> Author:
    """Return the caller, and what the call rests on. Raises Refused for words that nobody said."""
    header = context.header
    source = source or Source(header.id, context.transcript)
    located = deferred.evidence.locate(claims, source)
    return Author(
        ACTORS.get(header.origin, Actor.AGENT),
        header.id,
        header.parent or NO_SESSION,
        context.call.name,
        context.call.id,
        reason,
        located.evidence,
        # A review may have read more than its conversation, such as what a backend keeps.
        min(source.transcript.trust, context.transcript.trust),
        located.quotes,
        said=located.said,
    )


def _describe_recorded(entries: Sequence[Entry]) -> str:
    ids = ", ".join(str(entry.id) for entry in entries)
    first = entries[0].change
    if not entries[0].id:
        waits = (
            f"It will wait for the user: {first.cause}."
            if first.cause
            else "It takes effect when this review ends."
        )
        return f"Noted. {waits}"
    if first.standing is ChangeState.PENDING:
        return f"Waits for the user's approval (change {ids}): {first.cause}. It has no effect until then."
    return f"Saved (change {ids})."


def line(skill: ListedSkill) -> str:
    return f"- {skill.name}: {one_line(skill.description, WIDTH)}"


def answer(text: str) -> Outcome:
    return Outcome(text, trust=Trust.AGENT)


def _refuse(error: HoneError) -> Outcome:
    return Outcome(str(error), failed=True, trust=Trust.AGENT)


def _paths(files: folder.Files) -> list[str]:
    return sorted(path for path in files if not path.startswith("@"))


def _others(files: folder.Files) -> str:
    return f"Files: {', '.join(_paths(files))}."
