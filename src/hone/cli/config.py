"""`hone config`: show the settings, where each one comes from, and which model they select."""

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
import msgspec

from hone.app import Hone
from hone.cli.config_keys import (
    describe_values,
    find_value,
    name_variable,
    parse_key,
    parse_value,
    shown_values,
    split_key,
)
from hone.cli.context import find_editor, open_editor
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import USAGE, Options, complain, complete
from hone.cli.output import create, echo, echo_prose
from hone.cli.settings_file import Changes, find_written, load_changed, write_settings
from hone.core.clock import SystemClock
from hone.core.errors import HoneError, SettingsError
from hone.core.toml_faults import KeyPath, spell
from hone.core.visible import visible
from hone.files.atomic import make_folder
from hone.models.http import Http
from hone.models.providers import Provider, address, choose
from hone.runtime.model_factory import KeyedEnvironment, list_providers
from hone.settings import Settings, find_faults, home_folder, load_text, parse_text, read, read_variables

KEYS: Mapping[str, tuple[str, str]] = {
    "model": ("The model, as provider/name. Empty: found by the keys and local servers present.", '""'),
    "fallback": ("The model to use when the first one fails.", '""'),
    "calls": ("Model calls a turn may take.", "90"),
    "first_byte": ("Seconds until a provider's first byte. 0: 60, or 600 with a local server.", "0"),
    "certificates": ("A file with certificates to trust in addition to the system's.", '""'),
    "tries": ("How often a request is sent when the provider is overloaded or out of reach.", "4"),
    "result_limit": (
        "Characters of a result that the model gets; the rest is kept in a file.",
        "20000",
    ),
    "window": ("Tokens a conversation may take. 0: 200,000, or 32,000 with a local server.", "0"),
    "compact_at": ("The share of the window at which older messages give way to notes.", "0.75"),
    "cache": (
        "How long Anthropic keeps the system text and the tools: 5m or 1h. `hone models show` explains.",
        '"5m"',
    ),
    "mode": ("How much Hone does without asking: plan, ask, auto or full.", '"auto"'),
    "database": ("The address of a PostgreSQL database. Empty: the file hone.db in the home.", '""'),
    "search": ("The address of a SearXNG-compatible server, for web_search.", '""'),
    "plugins": ("Python functions that add tools and models, as package.module:function.", "[]"),
    "hooks": (
        "Your commands that run at events: before_tool, after_tool, turn_end or learned; see docs/hooks.md.",
        'event = "before_tool"\ncommand = "scripts/check"\ntools = ["write_file"]\ntimeout = 60',
    ),
    "mcp": (
        "A server whose tools Hone may use, by its name: a command or a url; see docs/mcp.md.",
        'command = "uvx"\nargs = ["mcp-server-git==2026.10.19"]\nfolders = ["."]',
    ),
    "bounds": (
        "When Hone gives up on a reply: seconds to the connection, to the first piece, between two pieces "
        "and to the end, and million characters. 0: 15, 300, 120, 3600 and 4; a local server gets more time.",
        "connect = 0\nfirst_content = 0\nsilence = 0\nreply = 0\nsize = 0",
    ),
    "permissions": (
        "What Hone does without asking, and what it always refuses. `hone permissions --help` explains "
        "rules.",
        'allow = ["terminal: make test"]\ndeny = ["write_file: migrations/**"]',
    ),
    "sampling": ("Sent to the provider unchanged.", "temperature = 0.7"),
    "guardrails": (
        "When Hone warns and then stops a model that repeats itself: [warn at, stop after]; and after how "
        "many replies with refused calls the turn ends.",
        "same_call = [2, 5]\nsame_tool = [3, 8]\nsame_result = [2, 5]\nend = 3",
    ),
    "memory": (
        "How many characters each part of the journal may have (0: off), and when a conversation learns of "
        "changes; which backend keeps memories by key (null, sqlite, postgres, honcho), its address and "
        "owner, and how many seconds a turn waits for it.",
        'memory = 2200\nuser = 1375\nproject = 2200\nfreshness = "next-turn"\nbackend = ""\nurl = ""\n'
        'owner = ""\ndeadline = 0.3',
    ),
    "learning": (
        "Whether a lesson of the agent, a review or the curator takes effect (auto), waits for you (ask) or "
        "is not made (off); after how many turns or tool iterations a review comes (0: never); who reviews a "
        "conversation after you leave (detach, queue, off), with which model, for how many dollars a day, "
        "and how many at a time.",
        'agent = "auto"\nreview = "auto"\ncurator = "auto"\nturns = 10\niterations = 10\n'
        'after_exit = "detach"\nmodel = ""\ndaily = 1.0\nparallel = 16\n'
        'show = "on"',
    ),
    "checkpoints": (
        "Whether Hone keeps copies of files before tools and commands change them, for `hone rewind`; how "
        "many MiB, and for how many days.",
        "enabled = true\nsize = 512\ndays = 30",
    ),
    "recall": (
        "Which model makes vectors of text, so that search finds meanings as well as words: local/minilm, "
        "local/gte-small, PROVIDER/MODEL or none; and the hosts that may get text for it. See hone recall "
        "use.",
        'embedder = ""\nsend_to = []',
    ),
    "serve": (
        "What operators see of hone serve (docs/operations.md), and what it does for the users of a team "
        "(docs/teams.md): where their tools work, their network, a proxy that signs people in, limits.",
        'metrics = ""\nlog = "off"\ndrain = 0\nrequests_per_minute = 600\nnetwork = "never"',
    ),
    "acp": (
        "Whether an agent in an editor (hone acp) may use the editor's files and terminal. They are outside "
        "the sandbox, so each use is asked about except in mode full.",
        "editor_files = false\neditor_terminal = false",
    ),
    "telemetry": (
        "Whether spans of requests, turns and calls go to OpenTelemetry (off, auto, on), without content.",
        'traces = "off"',
    ),
    "retention": (
        "For how many days conversations, long results and quarantined files are kept, and how many lines of "
        "what you typed; 0: until you delete them.",
        "sessions = 0\nspill = 0\nquarantine = 0\nhistory = 0",
    ),
    "sandbox": (
        "What commands may read and write beyond the working folder, which variables they get, and whether "
        "they may use the network (ask, allow, never).",
        'read = []\nwrite = []\nenv = []\nnetwork = "ask"',
    ),
    "projects": (
        "The same for one folder and those below it, in addition to what holds in all folders.",
        'read = ["~/data"]\nwrite = []\nenv = ["DATABASE_URL"]\nnetwork = "never"',
    ),
    "providers": (
        "An endpoint of your own: its address, its format (openai, responses or anthropic), which variable "
        "holds its key, and whether it is a local server (left out: the address tells).",
        'url = "http://127.0.0.1:9000/v1"\nformat = "openai"\nkey = "MY_ENDPOINT_API_KEY"\nlocal = true',
    ),
    "prices": (
        "US dollars for a million tokens of a model whose price Hone does not know.",
        "input = 1.0\noutput = 4.0\ncached = 0.1",
    ),
    "models": (
        "What Hone does not know of a model: how many tokens a conversation with it may take, and whether it "
        "can see pictures.",
        "window = 64000\nvision = false",
    ),
}
"""Each key of hone.toml: its purpose, and its default or an example as written in the file."""

TABLES = {
    "hooks": "[hooks]",
    "mcp": "mcp.servers.git",
    "bounds": "bounds",
    "permissions": "permissions",
    "sampling": "sampling",
    "guardrails": "guardrails",
    "memory": "memory",
    "learning": "learning",
    "checkpoints": "checkpoints",
    "recall": "recall",
    "serve": "serve",
    "acp": "acp",
    "telemetry": "telemetry",
    "retention": "retention",
    "sandbox": "sandbox",
    "projects": 'projects."/path/to/folder".sandbox',
    "providers": "providers.mine",
    "prices": 'prices."mine/some-model"',
    "models": 'models."mine/some-model"',
}

VARIABLES = (
    ("model", "HONE_MODEL"),
    ("fallback", "HONE_FALLBACK"),
    ("database", "HONE_DATABASE"),
    ("memory", "HONE_MEMORY_BACKEND"),
    ("memory", "HONE_MEMORY_URL"),
)
"""The key of the file that each variable overrides."""


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    short_help="Show and change settings, and say which model is used.",
)
@click.pass_context
def config(ctx: click.Context) -> int:
    """Show the settings, where each comes from, and which model is used.

    Settings are read from hone.toml in Hone's home; HONE_MODEL, HONE_FALLBACK,
    HONE_MEMORY_BACKEND and HONE_MEMORY_URL win over it. docs/configuration.md lists all keys.
    """
    return 0 if ctx.invoked_subcommand else show(ctx.obj)


@config.command(short_help="Print the value of a setting.")
@click.argument("key", shell_complete=complete("keys"))
@click.pass_obj
def get(options: Options, key: str) -> None:
    """Print the value of KEY, such as learning.turns, as it is in force now.

    A table is printed key by key.
    """
    name, _ = parse_key(key)
    found = find_value(read(settings_path(options).parent), name)
    echo(map(visible, describe_values(found, name)))


@config.command("set", short_help="Change a setting in the settings file.")
@click.argument("key", shell_complete=complete("keys"))
@click.argument("value", nargs=-1, required=True)
@click.pass_obj
def set_(options: Options, key: str, value: tuple[str, ...]) -> None:
    """Write VALUE for KEY into the settings file. Comments and everything else stay as they are.

    Several VALUES make a list: hone config set sandbox.read ~/data /srv/data
    """
    file = settings_path(options)
    name, hint = parse_key(key)
    _apply(file, {name: parse_value(name, hint, value)})
    winning = f"HONE_{'_'.join(name).upper()}"
    click.echo(f"Set {spell(name)} in {file}.")
    if os.environ.get(winning) and any(winning == variable for _, variable in VARIABLES):
        click.echo(f"${winning} is set and wins over it.", err=True)


@config.command(short_help="Take a setting out of the settings file.")
@click.argument("key", shell_complete=complete("keys"))
@click.pass_obj
def unset(options: Options, key: str) -> None:
    """Take KEY out of the settings file, so that its default holds again. Everything else stays as it is."""
    file = settings_path(options)
    name = split_key(key)
    written = find_written(file, name)
    if isinstance(written, dict):
        raise click.UsageError(f"{spell(name)} is a table. Name one of its keys, or use hone config edit.")
    if written is None:
        parse_key(key)  # reports what is wrong with an unknown name
        click.echo(f"{spell(name)} is not set in {file}.")
        return
    _apply(file, {name: None})
    click.echo(f"Removed {spell(name)} from {file}.")


def _apply(file: Path, changes: Changes) -> None:
    """Write changes to the settings file, unless they would make it invalid."""
    with suppress(ValueError, OSError):  # reported when it is written
        before = {fault.says for fault in find_faults(file.parent, load_text(file))}
        after = find_faults(file.parent, load_changed(file, changes))
        if fault := next((each for each in after if each.says not in before), None):
            raise click.UsageError(f"Nothing was changed: {fault.says}.")
    make_home(file)
    write_settings(file, changes)


@config.command(short_help="Check the settings file.")
@click.pass_obj
def check(options: Options) -> int:
    """Check the settings file, and name every fault with its line and what is allowed there."""
    file = settings_path(options)
    problems = find_problems(file)
    for problem in problems:
        complain(problem, USAGE)
    if problems:
        return USAGE
    click.echo(f"{file} is fine." if file.exists() else f"{file} does not exist: all defaults.")
    return 0


@config.command()
@click.pass_obj
def path(options: Options) -> None:
    """Print where the settings file is, or would be."""
    click.echo(settings_path(options))


@config.command()
@click.pass_obj
def init(options: Options) -> None:
    """Write a settings file with the defaults in it, as comments."""
    click.echo(
        f"Wrote {_written(settings_path(options))}. Every line in it is a comment until you change it."
    )


@config.command(short_help="Open the settings file in an editor.")
@click.pass_obj
def edit(options: Options) -> int:
    """Open the settings file in $VISUAL or $EDITOR, and check it afterwards."""
    file = settings_path(options)
    find_editor(file)
    if not file.exists():
        _written(file)
    open_editor(file)
    problems = find_problems(file)
    for problem in problems:
        complain(problem, USAGE)
    return USAGE if problems else 0


def find_problems(file: Path) -> list[str]:
    """Return what is wrong with the settings file, one sentence each."""
    try:
        found = find_faults(file.parent, load_text(file))
        if not found:
            read(file.parent)
    except SettingsError as error:
        return [str(error)]
    return [f"{file}, {fault}." for fault in found]


def read_rest(home: Path) -> tuple[Settings, list[KeyPath]]:
    """Return the settings without the faults in the file, and the keys that were left out."""
    try:
        left = [fault.path for fault in find_faults(home, load_text(home / "hone.toml"))]
        return read(home, without=left), left
    except SettingsError:
        return read_variables(), []


def settings_path(options: Options) -> Path:
    return (options.home or home_folder()) / "hone.toml"


def make_home(file: Path) -> None:
    """Create the folder of a file. Raises HoneError."""
    try:
        make_folder(file.parent)
    except OSError as error:
        raise HoneError(f"{file.parent} cannot be made: {error.strerror}.") from error


def _written(file: Path) -> Path:
    make_home(file)
    create(file, template())
    return file


def template() -> str:
    """Return the file that `init` writes: every key, explained, as a comment."""
    rows = [
        "# Remove a # to make its line count; `hone config` shows the settings in force.",
        "",
    ]
    for key, (explanation, value) in KEYS.items():
        rows.append(f"# {explanation}")
        if key in TABLES:
            rows += [f"#[{TABLES[key]}]", *(f"#{line}" for line in value.split("\n")), ""]
        else:
            rows += [f"#{key} = {value}", ""]
    return "\n".join(rows)


def show(options: Options) -> int:
    """Print all settings. Faults in the file come first, then the rest of it."""
    file = settings_path(options)
    problems = find_problems(file)
    settings, left = read_rest(file.parent)
    origin = {key: place for key, place in sources(file, os.environ).items() if (key,) not in left}
    absent = "" if file.exists() else "  (does not exist: all defaults; hone config init writes one)"
    echo_prose([f"{file}{absent}\n"])
    for problem in problems:
        complain(f"✗ {problem}", USAGE)
    if problems:
        complain("Hone does not start until this is fixed: hone config edit\n", USAGE)
    echo_prose(map(visible, rows(settings, origin)))
    echo_prose(map(visible, ["", *asyncio.run(model_rows(options, settings))]))
    return USAGE if problems else 0


def sources(file: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the sources of values that are not defaults. A file that is not TOML provides none."""
    try:
        named = parse_text(file, load_text(file))
    except SettingsError:
        named = {}
    # `network` is the former name of a key in [sandbox].
    found = dict.fromkeys(("sandbox" if key == "network" else key for key in named), "hone.toml")
    return found | {key: f"${variable}" for key, variable in VARIABLES if environ.get(variable)}


def rows(settings: Settings, origin: Mapping[str, str]) -> Iterator[str]:
    values = shown_values(settings)
    for key, (explanation, _) in KEYS.items():
        yield f"{key} = {msgspec.json.encode(values[key]).decode()}  ({origin.get(key, 'default')})"
        yield f"    {explanation}"


async def model_rows(options: Options, settings: Settings) -> list[str]:
    """Return which model would be used and why, and which keys are set; never a key itself."""
    providers = list_providers(settings)
    environ = KeyedEnvironment(options.home or home_folder(), settings)
    wanted = options.model or settings.model
    http = Http(SystemClock(), certificates=settings.certificates)
    try:
        if Hone(home=options.home, settings=settings).is_from_plugin(wanted):
            found = [f"model in use: {wanted}", f"    {_reason(options, wanted)}, made by a plugin"]
        else:
            provider, name = await choose(wanted, providers, environ, http)
            found = [f"model in use: {name}", f"    {_reason(options, wanted, provider)}"]
    except SettingsError as error:
        found = ["model in use: none", *(f"    {line}" for line in str(error).split("\n"))]
    finally:
        await http.close()
    return [*found, "", *_keys(providers, environ)]


def _reason(options: Options, wanted: str, provider: Provider | None = None) -> str:
    if options.model:
        return "named with --model"
    if wanted or provider is None:
        return "named with $HONE_MODEL" if os.environ.get("HONE_MODEL") else "named in hone.toml"
    if provider.key and provider.default:
        how = "set" if os.environ.get(provider.key) else "stored"
        return f"the first key that is {how} is {provider.key}"
    return f"no key is set, and a server answers at {address(provider, os.environ)}"


def _keys(providers: Sequence[Provider], environ: KeyedEnvironment) -> Iterator[str]:
    for key in dict.fromkeys(each.key for each in providers if each.key):
        yield f"{name_variable(key)}: {environ.describe(key)}"
