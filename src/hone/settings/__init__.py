"""Read the settings from hone.toml and the environment, once, into one frozen tree."""

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from hone.core import seldom
from hone.core.errors import SettingsError
from hone.core.loading import import_object
from hone.sandbox.spec import real_path
from hone.settings.sections import (
    FORMATS,
    RETURNS,
    SMALLEST_WINDOW,
    AcpSettings,
    BoundSettings,
    CheckpointSettings,
    Guardrails,
    HookSettings,
    Learning,
    McpSettings,
    Memory,
    ModelSettings,
    PermissionSettings,
    PriceSettings,
    ProjectSettings,
    ProviderSettings,
    RecallSettings,
    RetentionSettings,
    SandboxSettings,
    ServeSettings,
)

if TYPE_CHECKING:
    from hone.core.toml_faults import TomlFault

FIND_FAULTS, LEAVE_OUT = "hone.core.toml_faults:find_faults", "hone.core.toml_faults:leave_out"
DESCRIBE_SYNTAX = "hone.core.toml_faults:describe_syntax"
"""Loaded for a file with a fault."""
_RESERVED = {
    *("messages", "model", "stream", "stream_options", "system", "tools"),
    *("include", "input", "instructions", "store"),
}


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Every key of hone.toml, with its default."""

    model: str = ""
    """The model, as provider/name. Empty: found by the keys and local servers that are there."""
    fallback: str = ""
    """The model to continue with when the first one fails."""
    calls: int = 90
    """Model calls that one turn may take."""
    first_byte: float = 0.0
    """Seconds to a provider's first byte; 0: 60, or 600 with a local server."""
    certificates: str = ""
    """A file with certificates to trust beside the system's, for a provider or proxy with its own."""
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
    """Sent to the provider as it is, such as temperature or max_tokens."""
    mode: Literal["plan", "ask", "auto", "full"] = "auto"
    """How much Hone does without asking: only look; ask before each write and command; work freely in the
    folder and the sandbox; everything."""
    database: str = ""
    """The address of a PostgreSQL database that keeps conversations and what was learned, as postgresql://…;
    empty: the file hone.db in the home."""
    search: str = ""
    """The address of a SearXNG-compatible server, for web_search."""
    plugins: tuple[str, ...] = ()
    """Python functions that add tools and models, as package.module:function."""
    hooks: tuple[HookSettings, ...] = ()
    """Commands of yours that run before and after tools, at the end of a turn, and when something was
    learned."""
    mcp: McpSettings = McpSettings()
    bounds: BoundSettings = BoundSettings()
    permissions: PermissionSettings = PermissionSettings()
    guardrails: Guardrails = Guardrails()
    memory: Memory = Memory()
    learning: Learning = Learning()
    checkpoints: CheckpointSettings = CheckpointSettings()
    recall: RecallSettings = RecallSettings()
    acp: AcpSettings = AcpSettings()
    serve: ServeSettings = ServeSettings()
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
                raise ValueError(f"projects has {name!r}; name a project by its folder, as /… or ~/…")
        if self.database and not self.database.startswith(("postgresql://", "postgres://")):
            raise ValueError("database must be an address such as postgresql://user@host/name")
        clash = sorted(_RESERVED & set(self.sampling))
        if clash:
            raise ValueError(f"sampling cannot set {', '.join(clash)}")
        for name, each in self.providers.items():
            _check_choice(f"providers.{name}.format", each.format, FORMATS)
            _check_choice(f"providers.{name}.returns", each.returns, RETURNS)
        _check_least("memory", self.memory, memory=0, user=0, project=0)
        if self.memory.deadline <= 0:
            raise ValueError("memory.deadline must be more than 0 seconds")
        _check_least("learning", self.learning, turns=0, iterations=0, daily=0)
        _check_least("checkpoints", self.checkpoints, size=1, days=1)
        _check_least("", self, calls=1, tries=1, first_byte=0, result_limit=1_000)
        if self.window and self.window < SMALLEST_WINDOW:
            raise ValueError(f"window must be 0 or at least {SMALLEST_WINDOW}")
        if not 0.1 <= self.compact_at <= 1:
            raise ValueError("compact_at must be between 0.1 and 1")

    def with_rules(self, allow: Iterable[str], deny: Iterable[str]) -> "Settings":
        """Return the settings with further permission rules, those of one program or one command."""
        known = self.permissions
        rules = PermissionSettings((*known.allow, *allow), (*known.deny, *deny))
        return self if rules == known else msgspec.structs.replace(self, permissions=rules)

    def sandbox_in(self, folder: Path) -> SandboxSettings:
        """What holds for commands in a folder. Of several projects around it the inner ones come last."""
        found = self.sandbox
        around = [(real_path(name), project.sandbox) for name, project in self.projects.items()]
        for root, own in sorted(around, key=lambda each: len(each[0].parts)):
            if folder.resolve().is_relative_to(root):
                found = SandboxSettings(
                    tuple(dict.fromkeys((*found.read, *own.read))),
                    tuple(dict.fromkeys((*found.write, *own.write))),
                    tuple(dict.fromkeys((*found.env, *own.env))),
                    own.network or found.network,
                )
        return found


def _check_least(table: str, values: msgspec.Struct, **least: float) -> None:
    for name, bound in least.items():
        if getattr(values, name) < bound:
            raise ValueError(f"{f'{table}.' if table else ''}{name} must be at least {bound}")


def _check_choice(key: str, value: str, known: tuple[str, ...]) -> None:
    if value and value not in known:
        raise ValueError(f"{key} must be one of {', '.join(known)}")


def home_folder(environ: Mapping[str, str] = os.environ) -> Path:
    return Path(environ.get("HONE_HOME") or Path.home() / ".hone")


def read(
    home: Path, environ: Mapping[str, str] = os.environ, *, without: Collection[tuple[str, ...]] = ()
) -> Settings:
    """Return the settings of hone.toml, without some keys. HONE_MODEL, HONE_FALLBACK, HONE_DATABASE,
    HONE_MEMORY_BACKEND and HONE_MEMORY_URL win over the file. Raises SettingsError."""
    path = home / "hone.toml"
    text = load_text(path)
    try:
        values = parse_text(path, text)
    except SettingsError as error:
        raise SettingsError(f"{error} To fix it: hone config edit") from error
    if without:
        values = import_object(LEAVE_OUT)(values, without)
    _add_variables(values, environ)
    try:
        _rename_network(values)
        settings = msgspec.convert(values, Settings)
        _protect_home(settings, home)
    except (msgspec.ValidationError, ValueError) as error:
        fault, *more = (*find_faults(home, text), str(error))
        hint = f"It is one of {len(more):,} faults; all of them: " if len(more) > 1 else "See "
        raise SettingsError(f"{path}, {fault}. {hint}hone config check") from error
    return settings


def read_variables(environ: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings of the environment alone, for a file that cannot be read."""
    values: dict[str, Any] = {}
    _add_variables(values, environ)
    return msgspec.convert(values, Settings)


def _add_variables(values: dict[str, Any], environ: Mapping[str, str]) -> None:
    for name in ("model", "fallback", "database"):
        if environ.get(f"HONE_{name.upper()}"):
            values[name] = environ[f"HONE_{name.upper()}"]
    named = {name: environ.get(f"HONE_MEMORY_{name.upper()}") for name in ("backend", "url")}
    if (found := {name: value for name, value in named.items() if value}) and isinstance(
        memory := values.setdefault("memory", {}), dict
    ):
        memory.update(found)


def find_faults(home: Path, text: str) -> "list[TomlFault]":
    """Return what is wrong with the keys of hone.toml. Raises SettingsError if it is not TOML."""
    values = parse_text(home / "hone.toml", text)
    try:
        _rename_network(values)
    except ValueError:
        return []
    found: list[TomlFault] = import_object(FIND_FAULTS)(text, values, Settings)
    return found


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
            if real_path(path).is_relative_to(own):
                raise ValueError(f"{path} in [sandbox] is Hone's own home, which no command may see")


def load_text(path: Path) -> str:
    """Return the text of hone.toml; nothing if there is none. Raises SettingsError."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}.") from error


def parse_text(path: Path, text: str) -> dict[str, Any]:
    """Return the values of hone.toml. Raises SettingsError."""
    if not text:
        return {}
    try:
        return seldom.tomllib.loads(text)
    except seldom.tomllib.TOMLDecodeError as error:
        reason = import_object(DESCRIBE_SYNTAX)(error)
        raise SettingsError(f"{path} is not valid TOML: {reason}.") from error
