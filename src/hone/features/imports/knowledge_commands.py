"""`hone import --knowledge`: show what another agent was taught on one screen, and approve it."""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from msgspec import Struct

from hone.app import Hone
from hone.cli.changes import account
from hone.cli.context import with_home, writable_keeper
from hone.cli.options import FAILED, Options, at_terminal
from hone.cli.output import echo, lay_out, number_of, screen_width
from hone.cli.render import paint_for
from hone.core.errors import Refused
from hone.core.ledger import ChangeId, Entry
from hone.core.visible import one_line, visible
from hone.features.imports import claude, codex, hermes
from hone.features.imports.knowledge import Moved, gather_knowledge
from hone.features.imports.proposals import ImportProposal, fresh, propose
from hone.features.imports.rules_elsewhere import RuleProposal
from hone.features.imports.servers_elsewhere import ServerProposal, write_servers
from hone.features.imports.sources import default_folder
from hone.knowledge import journal, places
from hone.knowledge.descriptions import describe
from hone.knowledge.skills.document import decode, parse
from hone.runtime.permissions.rules import parse_rule

SETTINGS = "hone.toml"
AGENTS = (claude.NAME, codex.NAME, hermes.NAME)
ALONE = "Nobody can be asked here. Say --yes to let it wait for you, or --approve all --yes."
Proposal = ImportProposal | RuleProposal | ServerProposal


class Choice(Struct, frozen=True):
    """The numbers that the owner chose. `named`: individually, and not all at once."""

    numbers: frozenset[int]
    named: bool


def move_in(
    options: Options, source: str, path: Path | None, approve: str, *, dry_run: bool, yes: bool
) -> int:
    """Show what another agent was taught, propose it, and approve what the owner chooses."""
    if source not in AGENTS:
        raise click.UsageError(f"--knowledge goes with one of {', '.join(AGENTS)}.")
    place = path.expanduser() if path else default_folder(source)

    async def find(hone: Hone) -> tuple[Moved, list[Proposal]]:
        moved = gather_knowledge(source, place)
        return moved, await _fresh(hone, moved)

    moved, found = with_home(options, find)
    echo(_table(found))
    for problem in moved.problems:
        click.echo(f"Not taken over: {visible(problem)}", err=True)
    if not found or dry_run:
        return 0
    choice = _choose(approve, len(found), yes=yes)
    made = with_home(options, lambda hone: _propose(hone, found))
    done = _approve(options, found, made, choice, yes=yes)
    return 0 if done else FAILED


async def _fresh(hone: Hone, moved: Moved) -> list[Proposal]:
    """Leave out what is known, was proposed before, or applies already."""
    keeper = writable_keeper(hone)
    known = {each.name for each in await hone.library.listed()}
    news = await fresh(keeper, moved.learned.proposals)
    lessons = [each for each in news if places.is_journal(each.target) or _name(each) not in known]
    stored = hone.permissions.rules.all().get("")
    held = {"allow": stored.allow, "deny": stored.deny} if stored else {}
    rules = [each for each in moved.rules if each.rule not in held.get(each.kind, ())]
    servers = [each for each in moved.servers if each.name not in hone.settings.mcp.servers]
    return [*lessons, *sorted(rules, key=lambda each: each.kind != "deny"), *servers]


def _name(proposal: ImportProposal) -> str:
    return places.name_of(proposal.target)


def _table(found: Sequence[Proposal]) -> Iterator[str]:
    if not found:
        yield "There is nothing new."
        return
    rows = [(str(number), *_row(each)) for number, each in enumerate(found, 1)]
    yield from lay_out(("", "what", "says", "from"), rows, screen_width())
    if any(map(is_granting, found)):
        yield "What allows something or starts a program is asked about by itself."


def _row(proposal: Proposal) -> tuple[str, str, str]:
    match proposal:
        case RuleProposal(kind, rule, source):
            return kind, one_line(rule, 200), source
        case ServerProposal():
            asked = f" (set {', '.join(proposal.withheld)} yourself)" if proposal.withheld else ""
            return "server", one_line(f"{proposal.name}: {proposal.summary}{asked}", 300), proposal.source
    if isinstance(proposal.edit, journal.Add):
        return "entry", one_line(proposal.edit.text, 600), proposal.source
    said = parse(decode("SKILL.md", proposal.edit.files["SKILL.md"])).description
    return "skill", one_line(f"{_name(proposal)}: {said}", 300), proposal.source


def is_granting(proposal: Proposal) -> bool:
    """Tell whether it permits something: such a proposal needs its own yes."""
    return isinstance(proposal, ServerProposal) or (
        isinstance(proposal, RuleProposal) and proposal.kind == "allow"
    )


def _choose(approve: str, count: int, *, yes: bool) -> Choice:
    if not approve and not yes:
        if not at_terminal():
            raise click.UsageError(ALONE)
        click.echo("Approve which? [a] all   [1 3-5] these   [n] none: they wait for you (default)")
        approve = click.prompt("?", default="n", show_default=False)
    return read_choice(approve, count)


def read_choice(text: str, count: int) -> Choice:
    """Read `all`, `none` or numbers such as `1 3-5`. Raises UsageError."""
    words = text.strip().lower()
    if words in ("a", "all"):
        return Choice(frozenset(range(1, count + 1)), named=False)
    if words in ("", "n", "none"):
        return Choice(frozenset(), named=True)
    numbers: set[int] = set()
    for part in re.split(r"[\s,]+", words):
        found = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if not found:
            raise click.UsageError(
                f"{one_line(part, 40)!r} is no number. Write all, none, or numbers: 1 3-5."
            )
        numbers |= set(range(int(found[1]), int(found[2] or found[1]) + 1))
    if beyond := sorted(each for each in numbers if not 1 <= each <= count):
        raise click.UsageError(f"There is no {beyond[0]}; the list has {count}.")
    return Choice(frozenset(numbers), named=True)


async def _propose(hone: Hone, found: Sequence[Proposal]) -> dict[int, Entry]:
    """Propose changes of the ledger, and return them by their numbers in the list."""
    made: dict[int, Entry] = {}
    for number, each in enumerate(found, 1):
        if isinstance(each, ImportProposal):
            entries, problems = await propose(hone.keeper, [each])
            made.update((number, entry) for entry in entries)
            for problem in problems:
                click.echo(f"Not taken over: {visible(problem)}", err=True)
    return made


def _approve(
    options: Options, found: Sequence[Proposal], made: dict[int, Entry], choice: Choice, *, yes: bool
) -> bool:
    chosen = [made[number] for number in sorted(choice.numbers) if number in made]
    done = not chosen or with_home(options, lambda hone: _approve_lessons(hone, chosen, yes=yes))
    for number in sorted(choice.numbers):
        done = _settle(options, found[number - 1], named=choice.named, yes=yes) and done
    left = len(made) - (len(chosen) if done else 0)
    if left:
        click.echo(f"{number_of(left, 'proposal')} for you to read: hone pending")
    return done


async def _approve_lessons(hone: Hone, entries: Sequence[Entry], *, yes: bool) -> bool:
    """Show all of them exactly, ask once, and approve what was shown."""
    keeper = writable_keeper(hone)
    for change in await describe(keeper, entries):
        echo(account(change, paint_for(sys.stdout)))
    if not yes and not click.confirm(f"Approve {number_of(len(entries), 'change')} as shown?"):
        return False
    fine = True
    for entry in entries:
        try:
            if await keeper.ledger.entry(entry.id) != entry:
                raise Refused("it is no longer what was shown.")
            await keeper.approve(ChangeId(entry.id))
        except Refused as error:
            fine = False
            click.echo(f"Change {entry.id} was not approved: {visible(str(error))}", err=True)
    return fine


def _settle(options: Options, proposal: Proposal, *, named: bool, yes: bool) -> bool:
    """Import a rule or a server. One that permits something is asked about separately; if nobody can be
    asked, it must have been named by its number."""
    if isinstance(proposal, ImportProposal):
        return True
    kind, says, source = _row(proposal)
    if is_granting(proposal) and not (named and yes):
        if not at_terminal():
            click.echo(f"Left out: {kind} {says}. Name it by its number to approve it.", err=True)
            return True
        if not click.confirm(f"{kind} {says}, from {source}: take it over?"):
            return True

    async def act(hone: Hone) -> str:
        if isinstance(proposal, ServerProposal):
            write_servers(hone.home / SETTINGS, [proposal])
            return f"{proposal.name} is in hone.toml."
        hone.permissions.rules.add("", proposal.kind, parse_rule(proposal.rule))
        back = f'hone permissions remove "{proposal.rule}" --everywhere'
        return f"{proposal.kind} {proposal.rule} holds everywhere. Take it back with: {back}"

    try:
        click.echo(visible(with_home(options, act)))
    except Refused as error:
        click.echo(visible(str(error)), err=True)
        return False
    return True
