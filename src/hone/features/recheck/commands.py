"""`hone recheck`: show entries past their date, and decide about each."""

from collections.abc import Iterable
from datetime import date, timedelta
from typing import Any

import click

from hone.app import Hone
from hone.cli.context import ledger_of, with_home, writable_keeper
from hone.cli.options import Options, at_terminal, parse_age
from hone.cli.output import echo_json, echo_prose, number_of
from hone.core.ledger import Entry
from hone.core.visible import one_line, visible
from hone.features.recheck.entries import DAYS, PastEntry, RecheckAnswer, choose, find_entries, settle
from hone.features.recheck.probing import ProbeResult, probe

EPILOG = """\b
Examples:
  hone recheck                   # ask about each of them
  hone recheck 12 --until 30d
  hone recheck staging --remove
  hone recheck 12 --gone-if "make -n deploy"
"""
CHOICES = (
    "  [k] keep it, without an end",
    f"  [e] keep it for {DAYS} more days",
    "  [r] remove it",
    "  [s] skip it (default)",
)
KEYS = {"k": RecheckAnswer.KEEP, "e": RecheckAnswer.EXTEND, "r": RecheckAnswer.REMOVE}


def _end(_: click.Context, __: click.Parameter, text: str | None) -> date | timedelta | None:
    if not text:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return parse_age(text)


@click.command(epilog=EPILOG, short_help="Keep, extend or remove entries that are past their date.")
@click.argument("entry", default="")
@click.option("--keep", is_flag=True, help="Keep it, without an end.")
@click.option("--until", callback=_end, metavar="WHEN", help="Keep it until a date, or for 30d or 8w.")
@click.option("--remove", is_flag=True, help="Remove it.")
@click.option(
    "--holds-if", metavar="COMMAND", help="Keep it for 30 days if COMMAND succeeds, else remove it."
)
@click.option("--gone-if", metavar="COMMAND", help="Remove it if COMMAND succeeds, else keep it for 30 days.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, and ask nothing.")
@click.pass_obj
def recheck(
    options: Options,
    entry: str,
    keep: bool,
    until: date | timedelta | None,
    remove: bool,
    holds_if: str | None,
    gone_if: str | None,
    as_json: bool,
) -> None:
    """Ask about entries of the journal that are past their date, or settle the one that ENTRY names: by its
    change number, or by words of it.

    Such an entry is in no prompt. A COMMAND runs in the sandbox, without network, and cannot change the
    folder. Every answer is a change that hone undo takes back.
    """
    given = [each for each in (keep, until, remove, holds_if, gone_if) if each]
    if len(given) > 1 or bool(given) != bool(entry):
        raise click.UsageError("Name one ENTRY and one of --keep, --until, --remove, --holds-if, --gone-if.")
    if not entry:
        _ask_all(options, as_json=as_json)
        return

    async def act(hone: Hone) -> tuple[PastEntry, Entry, ProbeResult | None]:
        keeper, today = writable_keeper(hone), hone.library.today
        found = choose(await find_entries(keeper, hone.folder, today), entry)
        answer = RecheckAnswer.REMOVE if remove else RecheckAnswer.KEEP if keep else RecheckAnswer.EXTEND
        end = until if isinstance(until, date) else today + (until or timedelta(days=DAYS))
        result = None
        if command := holds_if or gone_if:
            result = await probe(command, hone.folder, hone.home, hone.clock)
            answer = RecheckAnswer.EXTEND if result.succeeded is bool(holds_if) else RecheckAnswer.REMOVE
        return found, await settle(keeper, found, answer, end), result

    found, made, result = with_home(options, act)
    if as_json:
        probed = {"code": result.code, "output": result.output} if result else None
        echo_json({**data(found), "change_made": made.id, "kind": made.change.kind, "probe": probed})
        return
    if result:
        echo_prose(_probed(result))
    click.echo(_made(found, made))


def _probed(result: ProbeResult) -> Iterable[str]:
    if result.output:
        yield visible(result.output)
    yield f"The command {'succeeded' if result.succeeded else f'failed with exit code {result.code}'}."


def _made(found: PastEntry, made: Entry) -> str:
    deed = "removed" if made.change.kind == "remove" else "kept"
    return f"{one_line(found.text, 80)}: {deed} by change {made.id}. Undo it with: hone undo {made.id}"


def data(entry: PastEntry) -> dict[str, Any]:
    """Return the entries for programs."""
    return {
        "change": entry.change,
        "part": entry.part,
        "target": entry.target,
        "text": entry.text,
        "until": entry.until.isoformat(),
    }


def _ask_all(options: Options, *, as_json: bool) -> None:
    async def read(hone: Hone) -> list[PastEntry]:
        return await find_entries(ledger_of(hone), hone.folder, hone.library.today)

    found = with_home(options, read)
    if as_json:
        echo_json([data(each) for each in found])
        return
    if not found:
        click.echo("No entry is past its date.")
        return
    click.echo(f"{number_of(len(found), 'entry', 'entries')} past the date, and in no prompt. Still true?")
    asks = at_terminal()
    for each in found:
        click.echo(f"\n{each.name}  {each.part}: {visible(each.text)}")
        if asks:
            _ask(options, each)
    if not asks:
        click.echo("\nAnswer with: hone recheck NUMBER --keep, --until 30d or --remove")


def _ask(options: Options, entry: PastEntry) -> None:
    for line in CHOICES:
        click.echo(line)
    key = click.prompt("", default="s", show_default=False, prompt_suffix="> ").strip().lower()[:1]
    if key not in KEYS:
        return

    async def act(hone: Hone) -> Entry:
        until = hone.library.today + timedelta(days=DAYS)
        return await settle(writable_keeper(hone), entry, KEYS[key], until)

    click.echo(_made(entry, with_home(options, act)))
