"""`hone experiment`: measure whether a lesson helps, by running a task many times with and without it."""

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import Options, at_terminal
from hone.cli.output import echo, echo_json
from hone.cli.queued import QUEUED
from hone.core.clock import SystemClock
from hone.core.errors import HoneError, Missing, Refused
from hone.core.visible import one_line, visible
from hone.features.experiments.demo import rehearse
from hone.features.experiments.findings import Finding, conclude, forget, found
from hone.features.experiments.gate_commands import gate
from hone.features.experiments.held_out import is_held_out
from hone.features.experiments.part import ExperimentsPart
from hone.features.experiments.queued import QueuedExperiment, queue
from hone.features.experiments.recording import Recorded, RecordingOptions, record
from hone.features.experiments.report import data, picture, table
from hone.features.experiments.runner import ExperimentRunner, Tell
from hone.features.experiments.subjects import find
from hone.features.experiments.task_file import to_dict
from hone.features.experiments.values import PAIRS, Check, LessonKind, Study, Task
from hone.features.experiments.working import delete as remove

EMPTY = "There are no experiments yet. Record a task: hone experiment new --from SESSION"
EPILOG = """\b
Examples:
  hone experiment new --from 3f2a --expect-text 1.4
  hone experiment run notes --skill release-notes
  hone experiment report notes --plot notes.svg
  hone experiment demo   see one, without a key
"""


@click.group(cls=CommandGroup, epilog=EPILOG, short_help="Measure whether a lesson helps.")
def experiment() -> None:
    """Measure whether a skill, an entry of the journal or a template helps.

    You take a task from a session and write a check. Hone then repeats the task in pairs of runs, with the
    lesson and without it. It does not touch your own home and folders.
    """


experiment.add_command(gate)


def _pair(_: click.Context, __: click.Parameter, value: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    parts = (each.partition(":") for each in value)
    return tuple((path, words) for path, _, words in parts)


@experiment.command(short_help="Make a task from a session.")
@click.option(
    "--from", "session", required=True, metavar="SESSION", help="The id of a session, or the beginning of it."
)
@click.option("--name", default="", help="1 to 64 of a-z, 0-9 and -. [default: from the request]")
@click.option(
    "--at", type=click.IntRange(1), metavar="N", help="Your message that asks. [default: the first]"
)
@click.option(
    "--files", multiple=True, metavar="PATTERN", help="Files to begin with. [default: those it named]"
)
@click.option(
    "--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where they are."
)
@click.option("--expect-text", default="", metavar="WORDS", help="Must be in the answer.")
@click.option("--expect-file", multiple=True, callback=_pair, metavar="PATH[:WORDS]", help="Must exist.")
@click.option(
    "--check-script",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Must end with 0.",
)
@click.pass_obj
def new(
    options: Options,
    /,
    session: str,
    name: str,
    at: int | None,
    files: tuple[str, ...],
    folder: Path | None,
    **expected: Any,
) -> None:
    """Make a task from a session: what you asked for, the files it began with, and a check.

    The check says whether a run succeeded; all that you give must hold. --check-script is run in the sandbox,
    in the folder of the run, with a file that has the answer in it as its argument; exit code 0 is success.
    Files are taken as they are now. With --at, the messages before that one are the beginning of each run.
    """
    check = _check(**expected)
    if not check and at_terminal():
        check = Check(text=click.prompt("Words that must stand in a good answer"))
    wish = RecordingOptions(name, at or 0, folder, files, check)

    async def act(hone: Hone) -> Recorded:
        studies = hone.part(ExperimentsPart).studies
        studies.place(name or "unnamed")
        recorded = await record(hone.sessions, session, wish, studies.names(), SystemClock())
        studies.add(recorded.task)
        return recorded

    recorded = with_home(options, act)
    task = recorded.task
    click.echo("\n".join(_told(task)))
    if recorded.changed:
        changed = ", ".join(visible(path) for path in recorded.changed)
        click.echo(f"Note that the session has changed {changed}: each run begins with what it left.")
    click.echo(f"Try a lesson on it: hone experiment run {task.name} --skill NAME")


def _check(expect_text: str, expect_file: tuple[tuple[str, str], ...], check_script: Path | None) -> Check:
    try:
        script = check_script.read_text("utf-8") if check_script else ""
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{check_script} cannot be read as text: {error}.") from error
    return Check(script, expect_text, expect_file)


@experiment.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
@click.pass_obj
def list_(options: Options, as_json: bool) -> None:
    """List experiments by name, and what was found out."""

    async def act(hone: Hone) -> list[tuple[Task, list[Finding]]]:
        studies, known = hone.part(ExperimentsPart).studies, []
        for name in studies.names():
            try:
                known.append((studies.task(name), [found(each) for each in studies.studies(name)]))
            except HoneError as error:
                hone.notices.append(str(error))
        return known

    known = with_home(options, act)
    if as_json:
        echo_json([_summary(task) | {"studies": [data(each) for each in each_]} for task, each_ in known])
        return
    for task, findings in known:
        part = " (held out)" if is_held_out(task.session) else ""
        click.echo(f"{task.name}{part}: {one_line(task.request, 80)}")
        for each in findings:
            click.echo(f"  {each.study.lesson}: {each.verdict}, {each.gist.partition(': ')[2]}")
    if not known:
        click.echo(EMPTY)


@experiment.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="Print all that the file says.")
@click.pass_obj
def show(options: Options, name: str, as_json: bool) -> None:
    """Print the task of experiment NAME: request, files, check."""

    async def act(hone: Hone) -> Task:
        return hone.part(ExperimentsPart).studies.task(name)

    task = with_home(options, act)
    if as_json:
        echo_json(to_dict(task))
    else:
        click.echo("\n".join(_told(task)))


def lesson(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that name one."""
    for option in (
        click.option("--template", "templates", default="", metavar="NAME", help="A template."),
        click.option(
            "--entry", "entries", default="", metavar="ID", help="An entry: its change, or words of it."
        ),
        click.option("--skill", "skills", default="", metavar="NAME", help="A skill."),
    ):
        command = option(command)
    return command


def _named(skills: str, entries: str, templates: str) -> tuple[LessonKind, str] | None:
    given = zip(LessonKind, (skills, entries, templates), strict=True)
    named = [(kind, name) for kind, name in given if name]
    if len(named) > 1:
        raise click.UsageError("One lesson at a time: --skill, --entry or --template.")
    return named[0] if named else None


@experiment.command(short_help="Do the task with a lesson and without it.")
@click.argument("name")
@lesson
@click.option(
    "--pairs", type=click.IntRange(1, 10_000), default=PAIRS, show_default=True, help="How many at most."
)
@click.option("--all-pairs", is_flag=True, help="Do all pairs, even if fewer decide.")
@click.option("--model", default="", metavar="PROVIDER/NAME", help="Use this model instead of yours.")
@click.option("--queue", "queued", is_flag=True, help="Leave it to hone worker, within learning.daily.")
@click.pass_obj
def run(
    options: Options,
    /,
    name: str,
    pairs: int,
    all_pairs: bool,
    model: str,
    queued: bool,
    **lessons: str,
) -> None:
    """Do the task NAME in pairs of runs: with a lesson and without it.

    Each run has its own folder and home, with everything that Hone knows except the lesson. Finished runs are
    kept: after Ctrl-C, a crash or a provider's fault, the same command continues. Hone stops as soon as the
    pairs decide, after 6 at the earliest. If the lesson does nothing, at most 1 study in 20 says otherwise.

    With --queue a worker runs it, a pair at a time, and the runs count toward learning.daily.
    """
    wanted = _named(**lessons)
    if wanted is None:
        raise click.UsageError("Name the lesson: --skill, --entry or --template.")

    async def leave(hone: Hone) -> int:
        task = hone.part(ExperimentsPart).studies.task(name)
        subject = await find(hone, Path(task.folder), *wanted)
        found = (await hone.models.find(model or options.model)).name
        named = subject.entry or wanted[1]
        asked = QueuedExperiment(
            name, wanted[0], named, subject.lesson.digest, found, pairs, early=not all_pairs
        )
        return (await queue(hone, task, subject, asked)).number

    if queued:
        click.echo(QUEUED.format(number=with_home(options, leave)))
        return

    async def act(hone: Hone) -> tuple[Finding, list[str]]:
        runner = ExperimentRunner(hone)
        task = runner.studies.task(name)
        subject = await find(hone, Path(task.folder), *wanted)
        with show_progress(f"{name}: {subject.lesson}", pairs) as tell:
            study = await runner.run(task, subject, model or options.model, pairs, tell, early=not all_pairs)
        finding = found(study)
        now = await find(hone, Path(task.folder), wanted[0], subject.entry or wanted[1])
        return finding, await conclude(hone, runner.studies, now, finding)

    finding, lines = with_home(options, act)
    echo((*table(finding), *lines))


@contextmanager
def show_progress(label: str, pairs: int) -> Iterator[Tell]:
    """Show progress on standard error, if somebody watches."""
    hidden = not sys.stderr.isatty()
    with click.progressbar(
        length=2 * pairs, label=label, file=sys.stderr, show_pos=True, hidden=hidden
    ) as bar:
        yield lambda done: bar.update(done - bar.pos)


@experiment.command(short_help="Print what was found out.")
@click.argument("name")
@lesson
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, with every run.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Draw it.")
@click.pass_obj
def report(
    options: Options, name: str, skills: str, entries: str, templates: str, as_json: bool, plot: Path | None
) -> None:
    """Print each difference that experiment NAME found, with a 95% interval, the latest study first.

    Differences are with the lesson minus without it. A turn is one reply of the model, an error a call that
    failed; the first success is the first call that did not.
    """
    wanted = _named(skills, entries, templates)

    async def act(hone: Hone) -> list[Study]:
        studies = hone.part(ExperimentsPart).studies
        task, known = studies.task(name), studies.studies(name)
        if wanted is None:
            return known
        if wanted[0] is LessonKind.ENTRY:
            subject = await find(hone, Path(task.folder), *wanted)
            return [each for each in known if each.lesson == subject.lesson]
        return [each for each in known if (each.lesson.kind, each.lesson.name) == wanted]

    findings = [found(each) for each in with_home(options, act)]
    if not findings:
        raise Missing(f"Nothing has been tried yet: hone experiment run {name} --skill NAME")
    _present(findings, (), as_json, plot)


def _present(findings: Sequence[Finding], lines: Sequence[str], as_json: bool, plot: Path | None) -> None:
    try:
        if plot:
            plot.write_text(picture(findings[0]), "utf-8")
    except OSError as error:
        raise Refused(f"{plot} cannot be written: {error.strerror}.") from error
    if as_json:
        echo_json([data(each) for each in findings])
    else:
        click.echo("\n\n".join("\n".join(table(each)) for each in findings))
        echo(lines)


@experiment.command()
@click.argument("name")
@click.pass_obj
def delete(options: Options, name: str) -> None:
    """Delete experiment NAME: its task and every run of it."""

    async def act(hone: Hone) -> int:
        studies = hone.part(ExperimentsPart).studies
        gone = await remove(hone, name)
        await forget(hone, studies, gone)
        return sum(len(each.runs) for each in gone)

    click.echo(f"Deleted experiment {name}, with {with_home(options, act):,} runs.")


@experiment.command(short_help="See a cold and a seeded start measured, without a key.")
@click.option("--pairs", type=click.IntRange(1, 1_000), default=PAIRS, show_default=True, help="How many.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list, with every run.")
@click.option("--plot", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE.svg", help="Draw it.")
def demo(pairs: int, as_json: bool, plot: Path | None) -> None:
    """Measure starting with a template against starting without one, on a small task.

    The model is scripted: the figures show how an experiment goes, not that templates help. All else is real.
    """
    with show_progress("cold versus seeded", pairs) as tell:
        finding, lines = asyncio.run(rehearse(pairs, tell))
    _present([finding], lines, as_json, plot)


def _summary(task: Task) -> dict[str, Any]:
    return {
        "name": task.name,
        "session": task.session,
        "request": task.request,
        "files": list(task.files),
    }


def _told(task: Task) -> list[str]:
    check = task.check
    rows = [f"{task.name}, from session {task.session}", f"request: {one_line(task.request, 500)}"]
    rows += [f"after {len(task.begun)} messages"] if task.begun else []
    files = ", ".join(map(visible, task.files))
    rows.append(f"files: {files or 'none'}")
    rows += [f"check: the answer has {one_line(check.text, 200)!r} in it"] if check.text else []
    for path, words in check.files:
        having = f" with {one_line(words, 200)!r} in it" if words else ""
        rows.append(f"check: there is a file {visible(path)}{having}")
    rows += ["check: this script ends with 0:", *_indented(check.script)] if check.script else []
    return rows


def _indented(text: str) -> list[str]:
    return [f"  {row}" for row in visible(text).rstrip("\n").split("\n")]
