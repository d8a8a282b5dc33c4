"""`hone config`: show the settings, where each one comes from, and which model they select."""

import asyncio
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from hone.app import Hone
from hone.cli.context import find_editor, open_editor
from hone.cli.options import Options
from hone.cli.output import create, echo
from hone.core.clock import SystemClock
from hone.core.errors import HoneError, SettingsError
from hone.core.secrets import mask_password
from hone.core.visible import visible
from hone.files.atomic import make_folder
from hone.models.http import Http
from hone.models.providers import Provider, address, choose
from hone.runtime.model_factory import KeyedEnvironment, list_providers
from hone.settings import Settings, home_folder, read

KEYS: Mapping[str, tuple[str, str]] = {
    "model": ("The model, as provider/name. Empty: found by the keys and local servers present.", '""'),
    "fallback": ("The model to go on with when the first one fails.", '""'),
    "calls": ("Model calls a turn may take.", "90"),
    "first_byte": ("Seconds until a provider's first byte. 0: 60, or 600 with a local server.", "0"),
    "certificates": ("A file with certificates to trust beside the system's.", '""'),
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
    "mode": ("How much is done without a question: plan, ask, auto or full.", '"auto"'),
    "search": ("The address of a SearXNG-compatible server, for web_search.", '""'),
    "plugins": ("Python functions that add tools and models, as package.module:function.", "[]"),
    "bounds": (
        "When a reply is given up: seconds to the connection, to the first piece, between two pieces and to "
        "the end, and million characters. 0: 15, 300, 120, 3600 and 4; a local server gets more time.",
        "connect = 0\nfirst_content = 0\nsilence = 0\nreply = 0\nsize = 0",
    ),
    "permissions": (
        "What is never asked about, and what is always refused; `hone permissions --help` explains rules.",
        'allow = ["terminal: make test"]\ndeny = ["write_file: migrations/**"]',
    ),
    "sampling": ("Sent to the provider as it stands.", "temperature = 0.7"),
    "guardrails": (
        "When a turn that goes in circles is warned and stopped: [warn at, stop after]; after how many "
        "replies with refused calls it ends.",
        "same_call = [2, 5]\nsame_tool = [3, 8]\nsame_result = [2, 5]\nend = 3",
    ),
    "memory": (
        "Characters each part of the journal may take (0: off), and when a conversation hears of changes; "
        "what keeps memories by key (null, sqlite, postgres, honcho), where, whose, and how many seconds a "
        "turn waits for them.",
        'memory = 2200\nuser = 1375\nproject = 2200\nfreshness = "next-turn"\nbackend = ""\nurl = ""\n'
        'owner = ""\ndeadline = 0.3',
    ),
    "learning": (
        "What becomes of what the agent, a review or the curator learns (auto, ask, off); after how many "
        "turns or tool iterations a review comes (0: never), who looks back over a conversation that was "
        "left (detach, queue, off), by which model, for how many dollars a day, how many at a time.",
        'agent = "auto"\nreview = "auto"\ncurator = "auto"\nturns = 10\niterations = 10\n'
        'after_exit = "detach"\nmodel = ""\ndaily = 1.0\nparallel = 16\n'
        'show = "on"',
    ),
    "checkpoints": (
        "Whether files are kept as they were before tools and commands change them, for `hone rewind`; how "
        "many MiB of them, and for how many days.",
        "enabled = true\nsize = 512\ndays = 30",
    ),
    "recall": (
        "What makes vectors of text, so that search finds meanings beside words: local/minilm, "
        "local/gte-small, PROVIDER/MODEL or nothing; and the hosts that text may be sent to for it. See "
        "hone recall use.",
        'embedder = ""\nsend_to = []',
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
        "The same for one folder and those below it, beside what holds in all folders.",
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
"""Each key of hone.toml: what it is for, and its default or an example as it is written in the file."""

TABLES = {
    "bounds": "bounds",
    "permissions": "permissions",
    "sampling": "sampling",
    "guardrails": "guardrails",
    "memory": "memory",
    "learning": "learning",
    "checkpoints": "checkpoints",
    "recall": "recall",
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
    ("memory", "HONE_MEMORY_BACKEND"),
    ("memory", "HONE_MEMORY_URL"),
)
"""Which key of the file each variable wins over."""


@click.group(invoke_without_command=True, short_help="Show the settings and which model is used, and why.")
@click.pass_context
def config(ctx: click.Context) -> None:
    """Show the settings, where each comes from, and which model is used.

    Settings are read from hone.toml in Hone's home; HONE_MODEL, HONE_FALLBACK,
    HONE_MEMORY_BACKEND and HONE_MEMORY_URL win over it.
    """
    if ctx.invoked_subcommand is None:
        show(ctx.obj)


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
    read(file.parent)
    return 0


def settings_path(options: Options) -> Path:
    return (options.home or home_folder()) / "hone.toml"


def _written(file: Path) -> Path:
    try:
        make_folder(file.parent)
    except OSError as error:
        raise HoneError(f"{file.parent} cannot be made: {error.strerror}.") from error
    create(file, template())
    return file


def template() -> str:
    """The file `init` writes: every key, explained, as a comment."""
    rows = [
        "# A line counts once you take its # away; `hone config` shows what is in force.",
        "",
    ]
    for key, (explanation, value) in KEYS.items():
        rows.append(f"# {explanation}")
        if key in TABLES:
            rows += [f"#[{TABLES[key]}]", *(f"#{line}" for line in value.split("\n")), ""]
        else:
            rows += [f"#{key} = {value}", ""]
    return "\n".join(rows)


def show(options: Options) -> None:
    file = settings_path(options)
    settings = read(file.parent)
    absent = "" if file.exists() else "  (not there: all defaults; `hone config init` writes one)"
    click.echo(f"{file}{absent}\n")
    echo(map(visible, rows(settings, sources(file, os.environ))))
    echo(map(visible, ["", *asyncio.run(model_rows(options, settings))]))


def sources(file: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Where the values come from that are not defaults. The file has been read without error before."""
    named = tomllib.loads(file.read_text("utf-8")) if file.exists() else {}
    # `network` is the former name of a key in [sandbox].
    found = dict.fromkeys(("sandbox" if key == "network" else key for key in named), "hone.toml")
    return found | {key: f"${variable}" for key, variable in VARIABLES if environ.get(variable)}


def rows(settings: Settings, origin: Mapping[str, str]) -> Iterator[str]:
    values: dict[str, Any] = msgspec.to_builtins(settings)
    for provider in values["providers"].values():
        provider["key"] = variable(provider["key"])
    values["memory"]["url"] = mask_password(values["memory"]["url"])
    for key, (explanation, _) in KEYS.items():
        yield f"{key} = {msgspec.json.encode(values[key]).decode()}  ({origin.get(key, 'default')})"
        yield f"    {explanation}"


def variable(name: str) -> str:
    """The name of a variable. What is no name could be the key itself, and stays unsaid."""
    return name if not name or name.isidentifier() else "(not the name of a variable)"


async def model_rows(options: Options, settings: Settings) -> list[str]:
    """Which model would be used and why, and which keys are there; never a key itself."""
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
        yield f"{variable(key)}: {environ.describe(key)}"
