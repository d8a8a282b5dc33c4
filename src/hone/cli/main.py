"""The `hone` command. Only click is loaded here; each sub-command brings the rest when it is called."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from keyword import iskeyword
from pathlib import Path

import click

from hone import __version__
from hone.core.errors import HoneError, SettingsError
from hone.core.value import dataclass

FAILED, USAGE, INTERRUPTED = 1, 2, 130

COMMANDS = {
    "run": "hone.cli.run",
    "sessions": "hone.cli.sessions",
    "traces": "hone.features.traces.commands",
    "import": "hone.features.imports.commands",
    "memory": "hone.cli.memory",
    "skills": "hone.cli.skills",
    "backends": "hone.features.backends.commands",
    "templates": "hone.features.templates.commands",
    "curator": "hone.features.curator.commands",
    "experiment": "hone.features.experiments.commands",
    "log": "hone.cli.log",
    "show": "hone.cli.log",
    "diff": "hone.cli.log",
    "undo": "hone.cli.undo",
    "pending": "hone.cli.pending",
    "approve": "hone.cli.pending",
    "reject": "hone.cli.pending",
    "forget": "hone.cli.forget",
    "reviews": "hone.cli.reviews",
    "review": "hone.cli.review",
    "worker": "hone.cli.worker",
    "serve": "hone.cli.serve",
    "config": "hone.cli.config",
    "trust": "hone.cli.trust",
    "models": "hone.features.local_models.commands",
    "doctor": "hone.cli.doctor",
    "demo": "hone.cli.demo",
}
"""The module that holds the click command of that name; `import` is `import_` there."""

EPILOG = """\b
Examples:
  hone                                   talk, in the folder you are in
  hone -c                                go on with the last conversation
  hone run "what does this project do?"  one question, one answer
  git diff | hone run "review this"      with something to read
  hone sessions list                     what was said before
  hone memory show                       what Hone knows of you and your work
  hone log                               what was learned, when and by whom
  hone undo 42                           take one of these changes back
  hone reviews                           how Hone learned, and what that took
  hone config                            which model is used, and why
  hone demo                              see it at work, without a key
"""


@dataclass(frozen=True, slots=True)
class Options:
    """What stands before the sub-command. `last` goes on with the session that was active last."""

    model: str = ""
    home: Path | None = None
    resume: str = ""
    last: bool = False
    template: str = ""


class LazyGroup(click.Group):
    """Knows its sub-commands by name and loads the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        word = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = getattr(import_module(COMMANDS[cmd_name]), word)
        return command if isinstance(command, click.Command) else None


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
) -> int:
    """Hone is an agent that works with you in the folder you are in.

    Without a command it starts a conversation.
    """
    if resume and last:
        raise click.UsageError("--resume names a session and --continue takes the last one: use one of them.")
    if template and (resume or last):
        raise click.UsageError("--template goes with a new session; this one has begun.")
    ctx.obj = Options(model, home.expanduser() if home else None, resume, last, template)
    if ctx.invoked_subcommand and skills:
        raise click.UsageError("--skill stands behind the command: hone run --skill NAME …")
    if ctx.invoked_subcommand:
        return 0
    from hone.cli.chat import chat

    return chat(ctx.obj, skills)


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


def complain(message: str, code: int) -> int:
    from hone.core.visible import visible

    print(visible(message), file=sys.stderr)
    return code
