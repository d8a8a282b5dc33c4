"""The table of commands and features. It holds only strings, so that reading it imports nothing.

To delete a feature, delete its folder below `features/` and its entry here.
"""

from collections.abc import Mapping
from typing import NamedTuple

Commands = Mapping[str, tuple[str, str]]
"""Command name → ("module:object", short help)."""

CHAT = "hone.cli.chat:chat"
"""The command that a plain `hone` runs."""

COMMANDS: Commands = {
    "setup": ("hone.cli.setup:setup", "Choose a model, test it and write it to hone.toml."),
    "run": ("hone.cli.run:run", "Do one TASK and print the answer."),
    "sessions": ("hone.cli.sessions:sessions", "List, read, continue, copy and delete conversations."),
    "memory": ("hone.cli.memory:memory", "Read and change what Hone knows about you and your work."),
    "skills": ("hone.cli.skills:skills", "List, read, write, install and archive skills."),
    "log": ("hone.cli.log:log", "List the changes to what Hone knows."),
    "show": ("hone.cli.log:show", "Show one change: who made it, why, and what it did."),
    "diff": ("hone.cli.log:diff", "Show what the change ID did, as a unified diff."),
    "undo": ("hone.cli.pending:undo", "Undo the change ID, and nothing that came later."),
    "pending": ("hone.cli.pending:pending", "Show the lessons that wait for you."),
    "approve": ("hone.cli.pending:approve", "Approve changes that wait for you."),
    "reject": ("hone.cli.pending:reject", "Reject changes that wait for you; they stay in the log."),
    "forget": ("hone.cli.forget:forget", "Withdraw what was learned from a session or a message."),
    "reviews": ("hone.cli.reviews:reviews", "List the reviews: done, running and queued."),
    "review": ("hone.cli.reviews:review", "Review a conversation now, and keep what it teaches."),
    "worker": ("hone.cli.worker:worker", "Run the queued reviews, and wait for more."),
    "serve": ("hone.cli.serve:serve", "Serve the page, and an endpoint for other programs."),
    "keys": ("hone.cli.keys:keys", "Store, list and remove the keys of model providers and MCP servers."),
    "config": ("hone.cli.config:config", "Show and change settings, and say which model is used."),
    "trust": ("hone.cli.trust:trust", "Trust FOLDER, the folder you are in, or each FILE as shown."),
    "permissions": (
        "hone.cli.permissions:permissions",
        "List what is allowed and denied in this folder, and change it.",
    ),
    "doctor": ("hone.cli.doctor:doctor", "Check the home folder, the model and the sandbox."),
    "completion": (
        "hone.cli.completing:completion",
        "Print a script that completes commands in bash, zsh or fish.",
    ),
    "demo": ("hone.cli.demo:demo", "Watch Hone work and learn, without a key or a network."),
}
"""The kernel's own commands."""


class Feature(NamedTuple):
    """One feature. `after` is the kernel command that its own commands follow in the help,
    `operations` a module that `hone serve` loads, `part` a class below `Part`, `hooks` the methods that it
    implements, `providers` the model providers it brings, `slash` its chat commands. Nothing else loads
    it."""

    name: str
    after: str
    commands: Commands
    operations: str = ""
    part: str = ""
    hooks: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    setting: str = ""
    """The setting without which the part has nothing to do, such as "recall.embedder"."""
    files: tuple[str, ...] = ()
    """Names below a project's folder or Hone's home. If any of them exists, the part has something to do,
    whatever the setting is. If none exists and there is no setting, it has nothing to do."""
    slash: Mapping[str, tuple[str, str, str]] = {}
    """Chat commands: name → ("module:object", short help, argument)."""
    below: Mapping[str, Commands] = {}
    """Commands below one of the kernel's commands: the kernel command's name → its subcommands."""


FEATURES = (
    Feature(
        "checkpoints",
        "sessions",
        {"rewind": ("hone.features.checkpoints.commands:rewind", "Undo what tools did to your files.")},
        operations="hone.features.checkpoints.operations",
        part="hone.features.checkpoints.part:CheckpointsPart",
        hooks=("observer", "tend", "leftovers", "checks", "holdings", "close"),
        slash={
            "rewind": (
                "hone.features.checkpoints.slash:rewind",
                "Go back to an earlier message, with or without files.",
                "[TURN]",
            ),
            "diff": (
                "hone.features.checkpoints.diffs:show_diff",
                "Show what tools changed in this conversation.",
                "[FILE]",
            ),
        },
    ),
    Feature(
        "agents",
        "skills",
        {
            "agents": (
                "hone.features.agents.commands:agents",
                "List, show and check the named helpers that tasks can go to.",
            )
        },
        part="hone.features.agents.part:AgentsPart",
        hooks=("wrap",),
        files=("agents", ".hone/agents", ".claude/agents"),
    ),
    Feature(
        "mcp",
        "serve",
        {
            "mcp": (
                "hone.features.mcp.commands:mcp",
                "Serve other agents over MCP, and use the tools of MCP servers.",
            )
        },
        operations="hone.features.mcp.server.operations",
        part="hone.features.mcp.part:McpPart",
        hooks=(
            *("wrap", "folder_sections", "news", "attach", "expand", "holdings", "close"),
            *("offer_servers", "fetch_skill"),
        ),
        setting="mcp.servers",
        files=(".mcp.json", ".hone/mcp.json", "mcp/editor.json"),
    ),
    Feature(
        "hooks",
        "permissions",
        {
            "hooks": (
                "hone.features.hooks.commands:hooks",
                "List your commands that run at events, and which of them count.",
            )
        },
        part="hone.features.hooks.part:HooksPart",
        hooks=("wrap", "ended", "learned", "close"),
        setting="hooks",
        files=(".hone/hooks.toml",),
    ),
    Feature(
        "acp",
        "serve",
        {"acp": ("hone.features.acp.commands:acp", "Serve an editor over the Agent Client Protocol.")},
        part="hone.features.acp.part:AcpPart",
        hooks=("wrap",),
        setting="acp.uses_editor",
    ),
    Feature(
        "telemetry",
        "serve",
        {},
        part="hone.features.telemetry.part:TelemetryPart",
        hooks=("monitor", "close"),
        setting="telemetry.is_on",
    ),
    Feature(
        "users",
        "serve",
        {
            "users": (
                "hone.features.users.commands:users",
                "Add people to a team's Hone; their keys, limits and audit log.",
            )
        },
    ),
    Feature(
        "erasing",
        "forget",
        {
            "erase": (
                "hone.features.erasing.commands:erase",
                "Erase a conversation, a lesson, a memory or words for good.",
            )
        },
        part="hone.features.erasing.part:ErasingPart",
        hooks=("tend", "checks"),
    ),
    Feature(
        "traces",
        "sessions",
        {
            "traces": (
                "hone.features.traces.commands:traces",
                "Export conversations to a file, import them, draw their tree.",
            )
        },
    ),
    Feature(
        "recall",
        "sessions",
        {
            "recall": (
                "hone.features.recall.commands:recall",
                "Set up search by meaning, and measure how well search works.",
            )
        },
        part="hone.features.recall.part:RecallPart",
        hooks=("recall", "meanings", "attend", "notify", "finish", "has_work", "work", "checks", "close"),
        setting="recall.embedder",
    ),
    Feature(
        "imports",
        "sessions",
        {
            "import": (
                "hone.features.imports.commands:import_",
                "Import your conversations with another agent.",
            ),
            "learn": (
                "hone.features.imports.learn_commands:learn",
                "Learn from your conversations with another agent.",
            ),
        },
        part="hone.features.imports.part:ImportsPart",
        hooks=("import_transcript", "perform", "holdings"),
    ),
    Feature(
        "sharing",
        "skills",
        {},
        below={
            "skills": {
                "sync": (
                    "hone.features.sharing.commands:sync",
                    "Write a skill where another agent reads it.",
                ),
                "export": (
                    "hone.features.sharing.commands:export",
                    "Save a skill as an archive in the open format.",
                ),
            }
        },
    ),
    Feature(
        "backends",
        "skills",
        {
            "backends": (
                "hone.features.backends.commands:backends",
                "Show, read and measure backends that store memories by key.",
            )
        },
        operations="hone.features.backends.operations",
        part="hone.features.backends.part:MemoryPart",
        hooks=(
            *("ready", "tools", "review_tools", "remind", "attend", "notify", "finish", "send"),
            *("holdings", "close"),
        ),
        setting="memory.may_have_backend",
    ),
    Feature(
        "templates",
        "skills",
        {
            "templates": (
                "hone.features.templates.commands:templates",
                "Keep calls that worked as examples for new sessions.",
            )
        },
        operations="hone.features.templates.operations",
        part="hone.features.templates.part:TemplatesPart",
        hooks=("seed", "resumed", "leftovers", "checks", "holdings"),
    ),
    Feature(
        "curator",
        "skills",
        {
            "curator": (
                "hone.features.curator.commands:curator",
                "Control how learned skills are merged and archived.",
            )
        },
        operations="hone.features.curator.operations",
        part="hone.features.curator.part:CuratorPart",
        hooks=("tend", "next_tend", "count_stale", "holdings"),
    ),
    Feature(
        "checks",
        "skills",
        {},
        part="hone.features.checks.part:ChecksPart",
        hooks=("settle_skills", "check_skills", "tend", "findings", "holdings"),
        below={
            "skills": {
                "checks": (
                    "hone.features.checks.commands:checks",
                    "List the checks that skills carry, and how they ended.",
                )
            }
        },
    ),
    Feature(
        "experiments",
        "skills",
        {
            "experiment": (
                "hone.features.experiments.commands:experiment",
                "Measure whether a lesson helps.",
            ),
            "bisect": (
                "hone.features.experiments.bisect_commands:bisect",
                "Find the change that broke a task.",
            ),
        },
        operations="hone.features.experiments.operations",
        part="hone.features.experiments.part:ExperimentsPart",
        hooks=("tend", "next_tend", "perform", "findings", "measured", "leftovers", "holdings"),
    ),
    Feature(
        "recheck",
        "pending",
        {
            "recheck": (
                "hone.features.recheck.commands:recheck",
                "Keep, extend or remove entries that are past their date.",
            )
        },
    ),
    Feature(
        "payback",
        "reviews",
        {
            "payback": (
                "hone.features.payback.commands:payback",
                "Show what each lesson cost and what it saved.",
            )
        },
        operations="hone.features.payback.operations",
        part="hone.features.payback.part:PaybackPart",
        hooks=("tend",),
    ),
    Feature(
        "lab",
        "skills",
        {"lab": ("hone.features.lab.commands:lab", "Watch a learner improve in a scripted world.")},
    ),
    Feature(
        "attribution",
        "sessions",
        {"why": ("hone.features.attribution.commands:why", "Say which lessons shaped an answer.")},
        operations="hone.features.attribution.operations",
        slash={
            "why": (
                "hone.features.attribution.slash:show_why",
                "Say which lessons shaped an answer.",
                "[MESSAGE]",
            )
        },
    ),
    Feature(
        "backups",
        "doctor",
        {
            "backup": ("hone.features.backups.commands:backup", "Copy everything Hone keeps into one FILE."),
            "restore": (
                "hone.features.backups.commands:restore",
                "Restore a home from a FILE that hone backup wrote.",
            ),
        },
    ),
    Feature(
        "moving",
        "doctor",
        {
            "move": (
                "hone.features.moving.commands:move",
                "Move your data to a PostgreSQL database, or back.",
            )
        },
    ),
    Feature(
        "uninstalling",
        "doctor",
        {
            "uninstall": (
                "hone.features.uninstalling.commands:uninstall",
                "Remove Hone from this machine; your data only with --purge.",
            )
        },
    ),
    Feature(
        "checkouts",
        "memory",
        {
            "pull": (
                "hone.features.checkouts.commands:pull",
                "Write journal and skills to a folder, to edit them there.",
            ),
            "push": (
                "hone.features.checkouts.commands:push",
                "Record what you edited in a folder that hone pull wrote.",
            ),
        },
        part="hone.features.checkouts.part:CheckoutsPart",
        hooks=("checks", "holdings"),
    ),
    Feature(
        "team",
        "pending",
        {
            "team": (
                "hone.features.team.commands:team",
                "Share what you know with your team, after a second person approves.",
            )
        },
        operations="hone.features.team.operations",
        part="hone.features.team.part:TeamPart",
        hooks=("ready", "sections", "news", "shared_entries", "wrap", "log_lines", "holdings"),
        setting="database",
        below={
            "memory": {
                "promote": (
                    "hone.features.team.promoting:promote",
                    "Make a project's entry yours in every folder.",
                )
            }
        },
    ),
    Feature(
        "local_models",
        "trust",
        {
            "models": (
                "hone.features.local_models.commands:models",
                "List the models that can be used; add small ones.",
            )
        },
        part="hone.features.local_models.part:LocalModelsPart",
        hooks=("models", "holdings", "close"),
        providers=("local",),
    ),
)


def list_commands() -> dict[str, tuple[str, str]]:
    """Return all commands in the order of the help."""
    table: dict[str, tuple[str, str]] = {}
    for name, entry in COMMANDS.items():
        table[name] = entry
        for feature in FEATURES:
            if feature.after == name:
                table.update(feature.commands)
    return table


def list_below(group: str) -> dict[str, tuple[str, str]]:
    """Return the commands that features add below one of the kernel's."""
    return {name: entry for feature in FEATURES for name, entry in feature.below.get(group, {}).items()}
