"""The `hone` command. It imports only click; each subcommand loads the rest when it runs."""

import os
import sys
from collections.abc import Sequence
from io import StringIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hone import __version__
from hone.cli.options import (
    FAILED,
    INTERRUPTED,
    PICK,
    USAGE,
    Options,
    complain,
    complete,
    fit_complaint,
    mode_option,
)
from hone.core.errors import HoneError, SettingsError
from hone.core.loading import import_object
from hone.registry import CHAT, list_commands

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXAMPLES = (
    ("hone setup", "choose a model and test it"),
    ("hone", "chat in this folder"),
    ("hone -c", "continue the last conversation of this folder"),
    ("hone -r", "choose a conversation to continue"),
    ("hone --mode plan", "look first, and end with a plan"),
    ('hone "what does this project do?"', "one question, one answer"),
    ('git diff | hone run "review this"', "with text to read"),
    ("hone sessions list", "list past conversations"),
    ("hone memory show", "show what Hone knows about you and your work"),
    ("hone log", "list what Hone learned, when and from whom"),
    ("hone undo 42", "undo one of these changes"),
    ("hone reviews", "list how Hone learned, and what it cost"),
    ("hone permissions", "show what Hone does without asking"),
    ("hone config", "show which model is used, and why"),
    ("hone demo", "watch Hone work, without a key"),
)
NARROW = 72
"""On a screen at most this wide, the meaning of a long example is below it."""
UNKNOWN = "hone.cli.unknown:check_task"
"""Imported for a word that is not a command."""

FORMATTER = "hone.cli.help_formatter:HelpFormatter"
"""Imported with the first help."""


def make_formatter(**widths: int | None) -> click.HelpFormatter:
    formatter: click.HelpFormatter = import_object(FORMATTER)(**widths)
    return formatter


click.Context.formatter_class = staticmethod(make_formatter)  # type: ignore[assignment]  # of every command


class LazyGroup(click.Group):
    """Knows its subcommands by name and short help, and imports the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(list_commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place, _ = list_commands().get(cmd_name, ("", ""))
        try:
            command = import_object(place) if place else None
        except ModuleNotFoundError as error:
            # A deleted feature is unknown; a command that fails to import is an error.
            if not place.startswith(f"{error.name}.") and not place.startswith(f"{error.name}:"):
                raise
            return None
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Treat words that name no command as a task, unless they look like a typo."""
        if ctx.resilient_parsing or args[0].startswith("--") or self.get_command(ctx, args[0]):
            return super().resolve_command(ctx, args)
        import_object(UNKNOWN)(args, list_commands())
        return "run", self.get_command(ctx, "run"), args

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list["CompletionItem[str]"]:
        """Offer the commands of the table, without importing them."""
        make = import_object("click.shell_completion:CompletionItem")
        names = {name: help for name, (_, help) in list_commands().items() if name.startswith(incomplete)}
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(make(name, help=help) for name, help in names.items()), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help) for name, (_, help) in list_commands().items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Examples"):
            formatter.write_dl(EXAMPLES, col_max=36 if formatter.width > NARROW else 16)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--model",
    "-m",
    default="",
    metavar="PROVIDER/NAME",
    help="The model to use; hone config shows which one it is now.",
)
@click.option(
    "--home", type=click.Path(path_type=Path), help="Hone's folder. [default: $HONE_HOME or ~/.hone]"
)
@click.option(
    *("--resume", "-r"),
    default="",
    is_flag=False,
    flag_value=PICK,
    metavar="[ID|WORDS]",
    help="Continue this conversation, named by its id or by words of its title. Without one: choose.",
    shell_complete=complete("sessions"),
)
@click.option("--continue", "-c", "last", is_flag=True, help="Continue the last conversation of this folder.")
@click.option(
    *("--skill", "skills"),
    multiple=True,
    metavar="NAME",
    help="Give it this skill; repeatable.",
    shell_complete=complete("skills"),
)
@click.option("--template", default="", metavar="NAME|auto", help="Start with examples; see hone templates.")
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

    Without a command it starts a chat. A task in quotes is done at once, as with hone run.
    """
    place = home.expanduser() if home else None
    ctx.obj = Options(model, place, resume, last, template, mode or "")
    if ctx.invoked_subcommand and skills:
        raise click.UsageError("Put --skill after the command: hone run --skill NAME …")
    if ctx.invoked_subcommand:
        return 0
    ctx.obj.check()
    code: int = import_object(CHAT)(ctx.obj, skills)
    return code


def main() -> None:
    """Run the command: return an exit code and, after an error, print one plain message."""
    sys.exit(perform(sys.argv[1:]))


def perform(arguments: Sequence[str]) -> int:
    # If the terminal's encoding lacks a letter, print its number instead of an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = cli.main(list(arguments), prog_name="hone", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.ClickException as error:
        error.show(told := StringIO())
        print(fit_complaint(told.getvalue()), end="", file=sys.stderr)
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        return complain("Stopped.", INTERRUPTED)
    except BrokenPipeError:
        _give_up_output()  # nobody reads it any more
        return FAILED
    except SettingsError as error:
        return complain(str(error), USAGE)
    except HoneError as error:
        return complain(str(error), FAILED)
    except OSError as error:
        if error.filename:
            return complain(f"{error.filename} cannot be used: {error.strerror}.", FAILED)
        _give_up_output()
        return complain(f"Hone cannot read or write something: {error.strerror or error}.", FAILED)


def _give_up_output() -> None:
    """Discard the output, or the interpreter reports an error at exit when it flushes the rest."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
