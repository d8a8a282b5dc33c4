"""The tables of hone.toml, each with its keys, their defaults and what they accept."""

import os
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from hone.core import seldom
from hone.core.loading import import_object
from hone.sandbox.spec import SandboxAccess, check_access, real_path

HONCHO_KEY = "HONCHO_API_KEY"
"""The variable that may choose a memory backend where none is set."""
SMALLEST_WINDOW = 4_000
"""Tokens. Less does not hold the prompt."""
Network = Literal["ask", "allow", "never"]
_MADE = {"PATH", "HOME", "TMPDIR", "TERM", "PAGER", "USER", "LOGNAME"}
LONGEST_HOOK = 600
"""Seconds."""
HOSTS = "hone.core.hosts:parse_host"
"""Loaded where a server declares hosts: few do."""
FORMATS = ("openai", "responses", "anthropic")
RETURNS = ("nothing", "reasoning_content", "reasoning_details", "thought_signature")


class ProviderSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An endpoint of your own, by a name of your own."""

    url: str
    """Its address, up to and including `/v1`."""
    format: str = ""
    """What it speaks: openai, responses or anthropic. Empty: found by its name."""
    key: str = ""
    """The environment variable that holds its key. Never the key itself."""
    returns: str = ""
    """What it wants back with each reply: nothing, reasoning_content, reasoning_details or thought_signature.
    Empty: found by its name."""
    local: bool | None = None
    """Whether it is a server of your own, with a small window. Left out: its address tells."""


class PriceSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """US dollars for a million tokens of a model whose price Hone does not know, by provider/name."""

    input: float
    """Fresh input."""
    output: float
    """Output, reasoning included."""
    cached: float | None = None
    """Input that the provider had in its cache. Left out: as much as fresh input."""
    written: float | None = None
    """Input that is written to the provider's cache. Left out: as much as fresh input."""


class ModelSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Hone does not know about a model, or has wrong, by provider/name."""

    window: int = 0
    """Tokens a conversation with it may take; 0: as with any other."""
    vision: bool | None = None
    """Whether it can see pictures. Left out: it can, unless Hone knows better."""

    def __post_init__(self) -> None:
        if self.window and self.window < SMALLEST_WINDOW:
            raise ValueError(f"window of a model must be 0 or at least {SMALLEST_WINDOW}")


class Guardrails(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When a turn that repeats itself is warned and stopped: [warn at, stop after]."""

    same_call: tuple[int, int] = (2, 5)
    """The same call with the same arguments, failing."""
    same_tool: tuple[int, int] = (3, 8)
    """The same tool, failing."""
    same_result: tuple[int, int] = (2, 5)
    """The same call with the same result."""
    end: int = 3
    """Replies with refused calls after which the turn ends."""


class PermissionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Rules of the form `tool: pattern`. `hone permissions` explains and lists them."""

    allow: tuple[str, ...] = ()
    """What Hone does without asking."""
    deny: tuple[str, ...] = ()
    """What Hone refuses in every mode."""


class HookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A command of yours that runs at an event. docs/hooks.md says what it is given and what it can say."""

    event: Literal["before_tool", "after_tool", "turn_end", "learned"]
    command: str
    """A program with its arguments; no shell reads it."""
    tools: tuple[str, ...] = ()
    """Names of tools, in which * stands for any characters; empty: all tools."""
    timeout: float = 60.0
    """Seconds."""
    sandbox: bool = True
    """Whether it is confined like the commands of the agent."""

    def __post_init__(self) -> None:
        try:
            words = seldom.shlex.split(self.command)
        except ValueError as error:
            raise ValueError(f"the command {self.command!r} of a hook cannot be read: {error}") from error
        if not words:
            raise ValueError("a hook needs a command")
        if not 0 < self.timeout <= LONGEST_HOOK:
            raise ValueError(f"timeout of a hook must be above 0 and at most {LONGEST_HOOK} seconds")
        if self.tools and self.event not in ("before_tool", "after_tool"):
            raise ValueError(f"tools has no meaning for a hook at {self.event}")


class McpServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A server whose tools Hone may use: a program on this machine, or an address. See docs/mcp.md."""

    command: str = ""
    """The program. It runs in the sandbox."""
    args: tuple[str, ...] = ()
    """Its arguments."""
    env: Mapping[str, str] = {}
    """Variables for it. ${NAME} stands for an environment variable of yours or a stored key."""
    url: str = ""
    """The address of a server that runs elsewhere, instead of a command."""
    headers: Mapping[str, str] = {}
    """What is sent to that address with each request; ${NAME} as in env."""
    folders: tuple[str, ...] = ()
    """Folders it may read and write: `.` for the folder of the conversation, else /… or ~/…"""
    hosts: tuple[str, ...] = ()
    """Hosts it needs. A program reaches these and no other. A private address has to be named itself, unless
    it is that of `url`."""
    tools: Literal["auto", "always", "never"] | tuple[str, ...] = "auto"
    """Which of its tools stand in the prompt: by their number and size, all, none, or those named. The others
    are found with mcp_find."""
    about: str = ""
    """What it is for, in a few words. Empty: what the server says."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 120.0
    """Seconds without an answer or progress after which a call is given up."""
    sandbox: bool = True
    """Whether the program is confined like the commands of the agent."""
    enabled: bool = True
    """Whether it is used."""

    def __post_init__(self) -> None:
        if self.url and not self.url.startswith(("https://", "http://")):
            raise ValueError("the url of an MCP server must begin with https:// or http://")
        for path in self.folders:
            if path != ".":
                check_access("write", path)
        for host in self.hosts:
            import_object(HOSTS)(host)


class BoundSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """When Hone gives up on a reply. 0 takes the default, which is longer for a local server."""

    connect: float = 0.0
    """Seconds to a connection; 0: 15."""
    first_content: float = 0.0
    """Seconds to the first piece of an answer; 0: 300, or 1,800 with a local server."""
    silence: float = 0.0
    """Seconds between two pieces of an answer, keep-alives aside; 0: 120, or 600 with a local server."""
    reply: float = 0.0
    """Seconds to the end of the answer; 0: 3,600, or 14,400 with a local server."""
    size: float = 0.0
    """Million characters of an answer; 0: 4."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"bounds.{name} must be 0 or more")


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much the journal may hold, and what keeps memories by key."""

    memory: int = 2_200
    """Characters of MEMORY.md, what Hone knows about your work; 0 turns it off."""
    user: int = 1_375
    """Characters of USER.md, what Hone knows about you; 0 turns it off."""
    project: int = 2_200
    """Characters of what Hone knows about one folder; 0 turns it off."""
    freshness: Literal["next-turn", "next-session"] = "next-turn"
    """When a running conversation hears about what was learned elsewhere."""
    backend: str = ""
    """What keeps memories by key: null, sqlite, postgres, honcho or a plugin's. Empty: honcho if
    HONCHO_API_KEY is set, its SDK is installed and it answers; else null."""
    url: str = ""
    """The address of that database or service."""
    owner: str = ""
    """Whose memories they are. Empty: the user who is logged in."""
    deadline: float = 0.3
    """Seconds that a turn waits for memories."""

    @property
    def may_have_backend(self) -> bool:
        return bool(self.backend or os.environ.get(HONCHO_KEY))


class Learning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What Hone learns, when, and what it may cost. A lesson takes effect (auto) where the trust rules allow
    it, waits for you (ask), or is refused (off)."""

    agent: Literal["auto", "ask", "off"] = "auto"
    """Lessons that the agent writes down during a conversation."""
    review: Literal["auto", "ask", "off"] = "auto"
    """Lessons of a review."""
    curator: Literal["auto", "ask", "off"] = "auto"
    """Changes by the curator, which keeps learned skills few."""
    merges: Literal["auto", "ask", "off"] = "ask"
    """Skills that the curator merges; the stricter of this and `curator` holds."""
    turns: int = 10
    """Turns after which a review is due; 0: never."""
    iterations: int = 10
    """Replies with tool calls after which a review is due; 0: never."""
    after_exit: Literal["detach", "queue", "off"] = "detach"
    """Who reviews a conversation that you left: a process that stays behind for some minutes, the next
    `hone`, or nobody; then reviews come only after so many turns."""
    model: str = ""
    """The model for reviews. Empty: the model of the conversation, whose prompt the provider still has."""
    daily: float = 1.0
    """US dollars that reviews may cost in a day."""
    gate: Literal["off", "skills", "all"] = "off"
    """Which lessons that nobody has confirmed are tried in the background, on tasks that you recorded: none,
    skills, or skills and entries of the journal."""
    checks: Literal["on", "off"] = "on"
    """Whether a skill's own checks must pass before it is used."""
    check_days: Annotated[int, msgspec.Meta(ge=0)] = 7
    """Days after which they run again; 0: only after a change."""
    unpaid: Annotated[float, msgspec.Meta(ge=0)] = 0.5
    """US dollars that reviews of one folder may cost in 30 days without bringing anything that lasts. On the
    way there they become rarer. What you ask to remember, correct or state is always reviewed. 0: no such
    limit."""
    parallel: Annotated[int, msgspec.Meta(ge=1, le=64)] = 16
    """Reviews that run at a time when many are queued: the root of their number, but no more than this. A
    server of your own gets one at a time."""
    show: Literal["off", "on", "verbose"] = "on"
    """How the end of a review is told: not at all, in one line, or with each change."""


class CheckpointSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Copies of files from before tools and commands changed them, for `hone rewind`."""

    enabled: bool = True
    """Whether copies are kept."""
    size: int = 512
    """MiB that they may take."""
    days: int = 30
    """Days for which they are kept."""


class RecallSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What search uses beside words. `hone recall use` sets it up."""

    embedder: str = ""
    """local/NAME for weights on this machine, or provider/model for an endpoint. Empty: words only."""
    send_to: tuple[str, ...] = ()
    """The hosts to which text may be sent for it."""


class AcpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `hone acp` may do through an editor. That passes by the sandbox, so each use is asked about except
    in mode full."""

    editor_files: bool = False
    """Whether Hone gets tools that read and write files through the editor, unsaved changes included."""
    editor_terminal: bool = False
    """Whether Hone gets a tool that runs commands in the editor's terminal."""

    @property
    def uses_editor(self) -> bool:
        return self.editor_files or self.editor_terminal


def split_address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address such as 127.0.0.1:9464. Raises ValueError."""
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ValueError(f"{text!r} is no address to listen at; write it as 127.0.0.1:9464")
    return host.strip("[]"), int(port)


class ServeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `hone serve` and `hone worker` show to operators (docs/operations.md), and what a server does for
    the users of a team (docs/teams.md)."""

    metrics: str = ""
    """The address at which Prometheus reads the numbers of the server, such as 127.0.0.1:9464; empty: none.
    It asks for no key, and shows no content."""
    log: Literal["off", "text", "json"] = "off"
    """What goes to stderr for each request, turn and review: nothing, or one line without content. Crashes
    are always written there."""
    log_users: bool = False
    """Whether a line about a request names who sent it."""
    drain: Annotated[float, msgspec.Meta(ge=0, le=3_600)] = 0.0
    """Seconds that the server keeps accepting requests after it was told to stop, while /ready says no, so
    that a load balancer can take it out."""
    workspaces: str = ""
    """The folder below which each user has a working folder. Empty: beside the home, with -workspaces at the
    end of its name."""
    network: Network = "never"
    """Whether web_fetch and commands of users may use the network. Commands then reach all that this machine
    reaches."""
    proxy_header: str = ""
    """The header in which a trusted proxy names the user, such as X-Forwarded-Preferred-Username. All three
    proxy keys are needed."""
    proxy_peers: tuple[str, ...] = ()
    """The addresses that the proxy connects from."""
    proxy_secret_file: str = ""
    """A file whose first line the proxy sends as X-Hone-Proxy-Secret."""
    requests_per_minute: Annotated[int, msgspec.Meta(ge=0)] = 600
    """Requests of a user without their own limit; 0: any number."""
    cost_per_day: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    """US dollars of a user without their own limit, learning included; 0: any amount."""
    storage_mb: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Megabytes that a user without their own limit may keep; 0: any number."""
    reviews: Annotated[int, msgspec.Meta(ge=0)] = 200
    """Reviews of a user without their own limit that may wait; 0: any number."""
    turns: Annotated[int, msgspec.Meta(ge=1)] = 8
    """Turns of one user, without their own limit, that one server process has under way."""
    audit_days: Annotated[int, msgspec.Meta(ge=30)] = 365
    """Days after which a row of the audit log is forgotten."""

    def __post_init__(self) -> None:
        if self.metrics:
            split_address(self.metrics)
        proxy = (self.proxy_header, self.proxy_peers, self.proxy_secret_file)
        if any(proxy) and not all(proxy):
            raise ValueError("serve needs proxy_header, proxy_peers and proxy_secret_file, or none of them")


class TelemetrySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Traces for OpenTelemetry, without content. docs/operations.md shows how to send them to a collector."""

    traces: Literal["off", "auto", "on"] = "off"
    """Whether spans are sent: no; if the extra is installed; always. Variables such as
    OTEL_EXPORTER_OTLP_ENDPOINT make it auto."""

    @property
    def is_on(self) -> bool:
        return self.traces != "off"


class RetentionSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How long text is kept; 0: until you delete it."""

    sessions: int = 0
    """Days for conversations, since their last message. What was learned from them stays."""
    spill: int = 0
    """Days for results that were too long for the model."""
    quarantine: int = 0
    """Days for files that could not be used."""
    history: int = 0
    """Lines of what you typed."""

    def __post_init__(self) -> None:
        if min(self.sessions, self.spill, self.quarantine, self.history) < 0:
            raise ValueError("the numbers of retention must be 0 or more; 0 keeps everything")


class SandboxPaths(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What commands may reach beyond the working folder and your tools. A path begins with / or ~/."""

    read: tuple[str, ...] = ()
    """Folders and files that commands may read."""
    write: tuple[str, ...] = ()
    """Folders that commands may also write to."""
    env: tuple[str, ...] = ()
    """Environment variables that commands get as they are."""

    def __post_init__(self) -> None:
        for key, paths in (("read", self.read), ("write", self.write)):
            for path in paths:
                check_access(key, path)
        for name in self.env:
            if not name.isidentifier() or not name.isascii():
                raise ValueError(f"{name!r} in env of sandbox is not the name of an environment variable")
            if name in _MADE:
                raise ValueError(f"Hone makes {name} itself for commands; take it out of env of sandbox")

    def access(self) -> SandboxAccess:
        """What of it exists, without links."""
        return SandboxAccess(
            tuple(path for path in map(real_path, self.read) if os.path.exists(path)),
            tuple(path for path in map(real_path, self.write) if os.path.isdir(path)),
            self.env,
        )


class SandboxSettings(SandboxPaths, frozen=True, forbid_unknown_fields=True):
    """What commands may reach in all folders, beyond the working folder and your tools. A path begins with /
    or ~/."""

    network: Network = "ask"
    """Whether web_fetch and commands may use the network: after a question per host, always, or never."""


class ProjectSandbox(SandboxPaths, frozen=True, forbid_unknown_fields=True):
    """What commands may reach in one folder and those below it, beside what holds in all folders."""

    network: Network | None = None
    """Whether they may use the network, instead of what holds in all folders."""


class ProjectSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What holds in one folder and those below it."""

    sandbox: ProjectSandbox = ProjectSandbox()


class McpClientSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What another agent gets over MCP, beside skills and its project's entries. Its provider sees it."""

    sessions: bool = False
    """Whether it may search your conversations and read them, those of all folders."""
    user: bool = False
    """Whether it may read USER.md and MEMORY.md, and propose entries for them."""
    mode: Literal["auto", "ask", "off"] = "auto"
    """What it proposes always waits for you. A conversation that it hands over is queued for review (auto),
    or kept until you review it (ask). With off it can only read."""


class McpSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Other agents and servers that Hone talks to over MCP."""

    servers: Mapping[str, McpServerSettings] = {}
    """Servers whose tools Hone may use, by name. `hone mcp add` writes one."""
    clients: Mapping[str, McpClientSettings] = {}
    """By the name after `hone mcp --client`, or that of the key."""
