"""`hone recall evaluate` and `hone recall questions`: measure search on questions with known answers."""

import sys
from pathlib import Path

import click
import msgspec

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, complain, confirm
from hone.cli.output import create, echo, echo_json, number_of
from hone.cli.render import account, price
from hone.core.errors import Refused
from hone.core.model import Usage
from hone.features.recall import report
from hone.features.recall.bundled import people
from hone.features.recall.evaluation import Evaluation, Tell, evaluate_people, silent
from hone.features.recall.evaluation import evaluate as evaluate_home
from hone.features.recall.opening import open_embedder
from hone.features.recall.own_questions import OwnQuestion, find_evidence, read_questions
from hone.features.recall.searches import prepare_with, searches_of
from hone.features.recall.writing import DrawnMessage, Written, count_tokens, draw, write
from hone.files.exports import note_export

NOTHING_NAMED = (
    "Say what to ask: --bundled, or --questions FILE. "
    "A model can write questions about your own conversations: hone recall questions --write FILE"
)
ALONE = "Hone cannot ask here whether to send this. Add --yes."
FILE = click.Path(dir_okay=False, path_type=Path)
EPILOG = """\b
Examples:
  hone recall evaluate --bundled --merged
  hone recall questions --write mine.jsonl --count 40
  hone recall evaluate --questions mine.jsonl
"""


@click.command(epilog=EPILOG, short_help="Ask search questions with known answers, and tell how it does.")
@click.option("--bundled", is_flag=True, help="Ask about the people that come with Hone.")
@click.option("--merged", is_flag=True, help="With --bundled: everybody's conversations in one home.")
@click.option("--questions", "path", type=FILE, metavar="FILE", help="Ask these questions of your own home.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def evaluate(options: Options, bundled: bool, merged: bool, path: Path | None, as_json: bool) -> None:
    """Ask search questions with known answers, and tell how many it finds.

    R@k is the share of the evidence among the first k results, MRR the mean of one over the place of the
    first. If an embedder is set, search is measured without it and with it. Your home is not changed.

    FILE has a JSON object a line: {"question": "…", "session": "3f2a", "message": 12}. The numbers are those
    that hone sessions show prints; "kind" is optional.
    """
    if not bundled and path is None:
        raise click.UsageError(NOTHING_NAMED)
    if merged and not bundled:
        raise click.UsageError("--merged goes with --bundled.")

    async def act(hone: Hone) -> list[Evaluation]:
        name = hone.settings.recall.embedder
        embedder = await open_embedder(hone.settings, hone.home, hone.clock)
        found = []
        try:
            if bundled:
                prepare = prepare_with(name, embedder, hone.clock)
                found.append(await evaluate_people(people(), merged=merged, prepare=prepare, tell=progress()))
            if path is not None:
                today = hone.clock.now().astimezone().date()
                probes = await find_evidence(hone.sessions, read_questions(path), path, today)
                searches = searches_of(hone.stores, name, embedder)
                found.append(await evaluate_home(f"Your home: {path}", searches, probes, progress()))
        finally:
            if embedder is not None:
                await embedder.close()
        return found

    found = with_home(options, act)
    if as_json:
        echo_json([report.data(each) for each in found])
        return
    for number, each in enumerate(found):
        echo([*([""] if number else []), *report.lines(each)])


def progress() -> Tell:
    """Show progress on standard error, in place, if somebody watches."""
    if not sys.stderr.isatty():
        return silent

    def tell(done: int, total: int) -> None:
        click.echo(f"\r{done:,} of {total:,}" + ("\r\x1b[K" if done == total else ""), nl=False, err=True)

    return tell


@click.command(short_help="Have a model write questions about your conversations.")
@click.option("--write", "path", type=FILE, required=True, metavar="FILE", help="A new file for them.")
@click.option("--count", type=click.IntRange(1, 1_000), default=40, show_default=True, help="How many.")
@click.option("--seed", type=int, default=1, show_default=True, help="Which messages are drawn.")
@click.option("--model", default="", metavar="PROVIDER/NAME", help="Use this model instead of yours.")
@click.option("--yes", is_flag=True, help="Send it without a question.")
@click.pass_obj
def questions(options: Options, path: Path, count: int, seed: int, model: str, yes: bool) -> int:
    """Have your model write questions about a sample of your messages, for hone recall evaluate.

    You are told what is sent, to which model and at what price, and asked before. Each question is about one
    message; those that repeat its words are left out. Recognized secrets are not sent.
    """
    if path.exists():
        raise Refused(f"{path} already exists and was not changed.")

    async def act(hone: Hone) -> int:
        subjects = await draw(hone.sessions, count, seed)
        if not subjects:
            raise Refused("No message is long enough to ask about. Talk with Hone first.")
        found = await hone.models.find(model)
        click.echo(describe(subjects, found.name, hone))
        if not confirm("Send them?", ALONE, yes=yes):
            return complain("Nothing was sent.", FAILED)
        written = [each async for each in write(found.model, found.name, hone.clock, subjects, progress())]
        return _store(path, written, hone.home)

    return with_home(options, act)


def describe(subjects: list[DrawnMessage], model: str, hone: Hone) -> str:
    """Describe what is sent, to whom, and what it will cost."""
    sent, back = count_tokens(subjects)
    prices = hone.models.price(model)
    cost = price(prices.of(Usage(input=sent, output=back)) if prices else None)
    sessions = number_of(len({subject.session for subject in subjects}), "session")
    what = f"{number_of(len(subjects), 'message')} from {sessions}, one at a time"
    return f"To {model}: {what}, about {sent:,} tokens in and {back:,} out · {cost}"


def _store(path: Path, written: list[Written], home: Path) -> int:
    """Write the usable questions, and report what was spent."""
    kept = [each for each in written if not each.fault]
    faulty, spent = len(written) - len(kept), account(each.usage for each in written)
    if not kept:
        return complain(f"No question can be used: they repeat their messages. {spent}", FAILED)
    lines = (
        OwnQuestion(each.question, each.subject.session, each.subject.number, each.subject.role.value)
        for each in kept
    )
    create(path, "".join(msgspec.json.encode(each).decode() + "\n" for each in lines))
    note_export(home, path)
    left = f"{faulty} left out, since they repeat their messages. " if faulty else ""
    click.echo(f"Wrote {number_of(len(kept), 'question')} to {path}. {left}{spent}")
    click.echo(f"Read them, then ask them: hone recall evaluate --questions {path}")
    return 0
