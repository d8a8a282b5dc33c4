"""The `hone` command. It imports only click; each subcommand loads the rest when it runs."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

import click

from hone import __version__
from hone.cli.options import FAILED, INTERRUPTED, USAGE, Options, complain, mode_option
from hone.core.errors import HoneError, SettingsError
from hone.core.loading import import_object
from hone.registry import CHAT, list_commands

EPILOG = """\b
Examples:
  hone setup                             choose a model, and test it
  hone                                   talk, in the folder you are in
  hone -c                                go on with the last conversation
  hone --mode plan                       look first, and end with a plan
  hone run "what does this project do?"  one question, one answer
  git diff | hone run "review this"      with something to read
  hone sessions list                     what was said before
  hone memory show                       what Hone knows of you and your work
  hone log                               what was learned, when and by whom
  hone undo 42                           take one of these changes back
  hone reviews                           how Hone learned, and what that took
  hone permissions                       what is done without a question
  hone config                            which model is used, and why
  hone demo                              see it at work, without a key
"""


class LazyGroup(click.Group):
    """Knows its sub-commands by name and short help, and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(list_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = list_commands().get(cmd_name, ("", ""))
        try:
            command = import_object(place) if place else None
        except ModuleNotFoundError as error:
            # A feature that was taken out is unknown; what a command itself misses is an error.
            if not place.startswith(f"{error.name}.") and not place.startswith(f"{error.name}:"):
                raise
            return None
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in list_commands().items()])


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--model",
    "-m",
    default="",
    metavar="PROVIDER/NAME",
    help="The model; hone config tells which one is used.",
)
@click.option(
    "--home", type=click.Path(path_type=Path), help="Hone's folder. [default: $HONE_HOME or ~/.hone]"
)
@click.option(
    "--resume", "-r", default="", metavar="ID", help="Go on with this session; a beginning will do."
)
@click.option("--continue", "-c", "last", is_flag=True, help="Go on with the last session.")
@click.option("--skill", "skills", multiple=True, metavar="NAME", help="Give it this skill; repeatable.")
@click.option("--template", default="", metavar="NAME|auto", help="Begin with examples; see hone templates.")
@mode_option()
@click.version_option(__version__, prog_name="hone", message="%(prog)s %(version)s")
@click.pass_context
def cli(
    ctx: click.Context,
    model: str,
    home: Path | None,
    resume: str,
    last: bool,
    skills: tuple[str, ...],
    template: str,
    mode: str | None,
) -> int:
    """Hone is an agent that works with you in the folder you are in.

    Without a command it starts a conversation.
    """
    if resume and last:
        raise click.UsageError("--resume names a session and --continue takes the last one: use one of them.")
    if template and (resume or last):
        raise click.UsageError("--template goes with a new session; this one has begun.")
    place = home.expanduser() if home else None
    ctx.obj = Options(model, place, resume, last, template, mode or "")
    if ctx.invoked_subcommand and skills:
        raise click.UsageError("--skill stands behind the command: hone run --skill NAME …")
    if ctx.invoked_subcommand:
        return 0
    code: int = import_object(CHAT)(ctx.obj, skills)
    return code


def main() -> None:
    """The console entry: an exit code and, where something went wrong, one plain message."""
    sys.exit(perform(sys.argv[1:]))


def perform(arguments: Sequence[str]) -> int:
    # A terminal that cannot spell a letter gets its number, never an error in place of an answer.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(list(arguments), prog_name="hone", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return complain("Stopped.", INTERRUPTED)
    except BrokenPipeError:
        _give_up_output()  # whoever read it has gone
        return FAILED
    except SettingsError as error:
        return complain(str(error), USAGE)
    except HoneError as error:
        return complain(str(error), FAILED)
    except OSError as error:
        if error.filename:
            return complain(f"{error.filename} cannot be used: {error.strerror}.", FAILED)
        _give_up_output()
        return complain(f"Something cannot be read or written: {error.strerror or error}.", FAILED)


def _give_up_output() -> None:
    """Or else the interpreter complains at its end, when it flushes what is left."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
