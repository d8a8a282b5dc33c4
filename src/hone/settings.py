"""Read the settings from hone.toml and the environment, once, into one frozen tree."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from hone.core import seldom
from hone.core.errors import SettingsError
from hone.sandbox.spec import SandboxAccess, find_system

SMALLEST_WINDOW = 4_000
"""Tokens. Less does not hold the prompt."""
Network = Literal["ask", "allow", "never"]
_MADE = {"PATH", "HOME", "TMPDIR", "TERM", "PAGER", "USER", "LOGNAME"}
_RESERVED = {
    *("messages", "model", "stream", "stream_options", "system", "tools"),
    *("include", "input", "instructions", "store"),
}
FORMATS = ("openai", "responses", "anthropic")
RETURNS = ("nothing", "reasoning_content", "reasoning_details", "thought_signature")


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An endpoint of your own. `key` names the environment variable that holds its key. `format`, and what it
    wants back with each reply (`returns`), are found by name where they are empty."""

    url: str
    format: str = ""
    key: str = ""
    returns: str = ""
    local: bool | None = None
    """Whether it is a server of your own, with a small window. Left out: its address tells."""


class PriceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens. What is left out costs as much as fresh input."""

    input: float
    output: float
    cached: float | None = None
    written: float | None = None


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Hone does not know of a model, or has wrong."""

    window: int = 0
    """Tokens a conversation with it may take; 0: as with any other."""
    vision: bool | None = None
    """Whether it can see pictures. Left out: it can, unless Hone knows better."""

    def __post_init__(self) -> None:
        if self.window and self.window < SMALLEST_WINDOW:
            raise ValueError(f"window of a model must be 0 or at least {SMALLEST_WINDOW}")


class Guardrails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a turn that goes in circles is warned and stopped: [warn at, stop after]. `end` is the number of
    replies with refused calls after which the turn ends."""

    same_call: tuple[int, int] = (2, 5)
    same_tool: tuple[int, int] = (3, 8)
    same_result: tuple[int, int] = (2, 5)
    end: int = 3


class PermissionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of the form `tool: pattern`. What is denied is refused in every mode; what is allowed is not
    asked about. `hone permissions` explains and lists them."""

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class BoundSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a reply is given up, in seconds. 0 takes the default, which is longer for a local server."""

    connect: float = 0.0
    """To a connection; 15."""
    first_content: float = 0.0
    """To the first piece of an answer: 300, or 1,800 with a local server."""
    silence: float = 0.0
    """Between two pieces of an answer, keep-alives aside: 120, or 600 with a local server."""
    reply: float = 0.0
    """To the end of the answer: 3,600, or 14,400 with a local server."""
    size: float = 0.0
    """Million characters of an answer: 4."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} of bounds must be 0 or more")


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Characters each part of the journal may take (0: off), when a conversation hears of changes, and what
    keeps memories by key: null, sqlite, postgres, honcho or a plugin's."""

    memory: int = 2_200
    user: int = 1_375
    project: int = 2_200
    freshness: Literal["next-turn", "next-session"] = "next-turn"
    backend: str = ""
    """Empty: honcho if HONCHO_API_KEY is set, its SDK is installed and it answers; else null."""
    url: str = ""
    """Of the database or the service."""
    owner: str = ""
    """Whose memories they are; empty: who is logged in."""
    deadline: float = 0.3
    """Seconds that a turn waits for them."""


class Learning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What becomes of a change by the agent, a review or the curator: auto takes effect where the trust rules
    allow it, ask waits for you, off is refused. A review comes after so many turns or replies with calls, and
    when a conversation that taught something is left."""

    agent: Literal["auto", "ask", "off"] = "auto"
    review: Literal["auto", "ask", "off"] = "auto"
    curator: Literal["auto", "ask", "off"] = "auto"
    merges: Literal["auto", "ask", "off"] = "ask"
    """What becomes of skills that the curator would make one; the stricter of this and `curator` holds."""
    turns: int = 10
    iterations: int = 10
    after_exit: Literal["detach", "queue", "off"] = "detach"
    """Who looks back over a conversation that was left: a process that stays behind for some minutes, the
    next `hone`, or nobody; then reviews come only after so many turns."""
    model: str = ""
    """Whom to ask for reviews; empty: whoever had the conversation, whose prompt the provider still has."""
    daily: float = 1.0
    """US dollars that reviews may cost in a day."""
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 16
    """Reviews that run at a time when many are queued: the root of their number, but no more than this. It is
    always one where the model runs on a server of your own."""
    show: Literal["off", "on", "verbose"] = "on"
    """How a review that has ended is told: not at all, in one line, or with each change."""


class CheckpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether files are kept as they were before tools and commands change them, for `hone rewind`; how many
    MiB of them, and for how many days."""

    enabled: bool = True
    size: int = 512
    days: int = 30


class RecallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What search and resemblance use beside words. `embedder` is "", "local/NAME" for weights on this
    machine, or "provider/model" for an endpoint. Text is sent only to hosts in `send_to`."""

    embedder: str = ""
    send_to: tuple[str, ...] = ()


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For how many days text is kept, and how many lines of the prompt's history; 0: until you delete it."""

    sessions: int = 0
    """Conversations, since their last message. What was learned from them stays."""
    spill: int = 0
    quarantine: int = 0
    history: int = 0
    """Lines."""

    def __post_init__(self) -> None:
        if min(self.sessions, self.spill, self.quarantine, self.history) < 0:
            raise ValueError("retention counts days and lines: 0 or more, and 0 keeps everything")


class SandboxPaths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What commands may reach beyond the working folder and the usual. A path begins with / or ~/."""

    read: tuple[str, ...] = ()
    """Folders and files."""
    write: tuple[str, ...] = ()
    """Folders."""
    env: tuple[str, ...] = ()
    """Names of environment variables that are passed on as they are."""

    def __post_init__(self) -> None:
        for key, paths in (("read", self.read), ("write", self.write)):
            for path in paths:
                _check_path(key, path)
        for name in self.env:
            if not name.isidentifier() or not name.isascii():
                raise ValueError(f"{name!r} in env of sandbox is not the name of an environment variable")
            if name in _MADE:
                raise ValueError(f"Hone makes {name} itself for commands; take it out of env of sandbox")

    def access(self) -> SandboxAccess:
        """What of it exists, without links."""
        return SandboxAccess(
            tuple(path for path in map(_real, self.read) if os.path.exists(path)),
            tuple(path for path in map(_real, self.write) if os.path.isdir(path)),
            self.env,
        )


class SandboxSettings(SandboxPaths, frozen=True, forbid_unknown_fields=True):
    """The same in all folders."""

    network: Network = "ask"
    """Whether web_fetch and commands may use the network: after a question per host, always, or never."""


class ProjectSandbox(SandboxPaths, frozen=True, forbid_unknown_fields=True):
    """In one folder and those below it, beside what holds in all folders."""

    network: Network | None = None
    """Instead of what holds in all folders."""


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds in one folder."""

    sandbox: ProjectSandbox = ProjectSandbox()


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every key of hone.toml, with its default."""

    model: str = ""
    """provider/name; empty: found by the keys and local servers present."""
    fallback: str = ""
    """The model to go on with when the first one fails."""
    calls: int = 90
    """Model calls a turn."""
    first_byte: float = 0.0
    """Seconds a provider may be silent before the turn ends; 0: 60, or 600 with a local server."""
    certificates: str = ""
    """A file with certificates that are trusted beside the system's, for a provider or proxy with its own."""
    window: int = 0
    """Tokens a conversation may take; 0: 200,000, or 32,000 with a local server."""
    compact_at: float = 0.75
    """The share of the window at which older messages give way to notes."""
    cache: Literal["5m", "1h"] = "5m"
    """How long Anthropic keeps the system text and the tools; an hour costs twice the price of fresh input
    when they are written. Messages are kept for five minutes."""
    tries: int = 4
    """How often a request is sent when the provider is overloaded or out of reach."""
    result_limit: int = 20_000
    """Characters of a tool's result that the model gets; the rest is kept in a file."""
    sampling: Mapping[str, Any] = {}
    """Sent to the provider as it stands, e.g. temperature or max_tokens."""
    mode: Literal["plan", "ask", "auto", "full"] = "auto"
    """How much the agent may do unasked: only look; ask before each write and command; work freely in the
    folder and the sandbox; everything."""
    search: str = ""
    """The address of a SearXNG-compatible server, for web_search."""
    plugins: tuple[str, ...] = ()
    """package.module:function, each called with the Hone and returning a Part."""
    bounds: BoundSettings = BoundSettings()
    permissions: PermissionSettings = PermissionSettings()
    guardrails: Guardrails = Guardrails()
    memory: Memory = Memory()
    learning: Learning = Learning()
    checkpoints: CheckpointSettings = CheckpointSettings()
    recall: RecallSettings = RecallSettings()
    retention: RetentionSettings = RetentionSettings()
    sandbox: SandboxSettings = SandboxSettings()
    projects: Mapping[str, ProjectSettings] = {}
    """By folder."""
    providers: Mapping[str, ProviderSettings] = {}
    prices: Mapping[str, PriceSettings] = {}
    models: Mapping[str, ModelSettings] = {}
    """By name, as provider/name."""

    def __post_init__(self) -> None:
        for name in self.projects:
            if not name.startswith(("/", "~/")):
                raise ValueError(f"projects has {name!r}, and a project is named by its folder, as /… or ~/…")
        clash = sorted(_RESERVED & set(self.sampling))
        if clash:
            raise ValueError(f"sampling cannot set {', '.join(clash)}")
        for name, each in self.providers.items():
            _check_choice(f"providers.{name}.format", each.format, FORMATS)
            _check_choice(f"providers.{name}.returns", each.returns, RETURNS)
        if min(self.memory.memory, self.memory.user, self.memory.project) < 0:
            raise ValueError("the limits of memory are characters: 0 or more")
        if self.memory.deadline <= 0:
            raise ValueError("deadline of memory must be above 0 seconds")
        if min(self.learning.turns, self.learning.iterations, self.learning.daily) < 0:
            raise ValueError("turns, iterations and daily of learning must be 0 or more")
        if self.checkpoints.size < 1 or self.checkpoints.days < 1:
            raise ValueError(
                "size and days of checkpoints must be at least 1; enabled = false turns them off"
            )
        if (self.window and self.window < SMALLEST_WINDOW) or not 0.1 <= self.compact_at <= 1:
            raise ValueError("window must be 0 or at least 4000, compact_at between 0.1 and 1")
        if self.calls < 1 or self.tries < 1 or self.first_byte < 0 or self.result_limit < 1_000:
            raise ValueError(
                "calls and tries must be at least 1, first_byte 0 or more, result_limit at least 1000"
            )

    def sandbox_in(self, folder: Path) -> SandboxSettings:
        """What holds for commands in a folder. Of several projects around it the inner ones come last."""
        found = self.sandbox
        around = [(_real(name), project.sandbox) for name, project in self.projects.items()]
        for root, own in sorted(around, key=lambda each: len(each[0].parts)):
            if folder.resolve().is_relative_to(root):
                found = SandboxSettings(
                    tuple(dict.fromkeys((*found.read, *own.read))),
                    tuple(dict.fromkeys((*found.write, *own.write))),
                    tuple(dict.fromkeys((*found.env, *own.env))),
                    own.network or found.network,
                )
        return found


def _check_choice(key: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise ValueError(f"{key} must be one of {', '.join(known)}")


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    return Path(environ.get("HONE_HOME") or Path.home() / ".hone")


def read(home: Path, environ: Mapping[str, str] = os.environ) -> Settings:
    """The file's values; HONE_MODEL, HONE_FALLBACK, HONE_MEMORY_BACKEND and HONE_MEMORY_URL win over it."""
    path = home / "hone.toml"
    values = _parse(path)
    for name in ("model", "fallback"):
        if environ.get(f"HONE_{name.upper()}"):
            values[name] = environ[f"HONE_{name.upper()}"]
    named = {name: environ.get(f"HONE_MEMORY_{name.upper()}") for name in ("backend", "url")}
    if (found := {name: value for name, value in named.items() if value}) and isinstance(
        memory := values.setdefault("memory", {}), dict
    ):
        memory.update(found)
    try:
        _rename_network(values)
        settings = msgspec.convert(values, Settings)
        _protect_home(settings, home)
    except (msgspec.ValidationError, ValueError) as error:
        raise SettingsError(f"{path}: {error}. See `hone config`.") from error
    return settings


def _rename_network(values: dict[str, Any]) -> None:
    """`network` used to stand outside [sandbox]."""
    if "network" not in values:
        return
    sandbox = values.setdefault("sandbox", {})
    if isinstance(sandbox, dict):
        if "network" in sandbox:
            raise ValueError("network is set twice; keep the one in [sandbox] and delete the other")
        sandbox["network"] = values.pop("network")


def _protect_home(settings: Settings, home: Path) -> None:
    """Hone's home is closed to commands. A folder around it may be named: the home stays hidden in it."""
    own = Path(os.path.realpath(home))
    for sandbox in (settings.sandbox, *(project.sandbox for project in settings.projects.values())):
        for path in (*sandbox.read, *sandbox.write):
            if _real(path).is_relative_to(own):
                raise ValueError(f"{path} in [sandbox] is Hone's own home, which no command may see")


def _real(path: str) -> Path:
    return Path(os.path.realpath(os.path.expanduser(path)))


def _check_path(key: str, path: str) -> None:
    if not path.startswith(("/", "~/")) and path != "~":
        raise ValueError(f"{path!r} in {key} of sandbox must begin with / or ~/")
    real = _real(path)
    if real == Path("/"):
        raise ValueError(f"{path!r} in {key} of sandbox is the whole machine; name the folders you need")
    system = find_system(real) if key == "write" else None
    if system:
        raise ValueError(f"{path!r} in write of sandbox holds the system itself ({system})")


def _parse(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.") from error
    try:
        return seldom.tomllib.loads(text)
    except seldom.tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path} is not valid TOML: {error}.") from error
