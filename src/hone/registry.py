"""The table of commands and features. It holds only strings, so that reading it imports nothing.

To delete a feature, delete its folder below `features/` and its entry here.
"""

from collections.abc import Mapping
from typing import NamedTuple

Commands = Mapping[str, tuple[str, str]]
"""Command name → ("module:object", short help)."""

CHAT = "hone.cli.chat:chat"
"""What `hone` does without a command."""

COMMANDS: Commands = {
    "setup": ("hone.cli.setup:setup", "Choose a model, test it and write it to hone.toml."),
    "run": ("hone.cli.run:run", "Do one TASK and print the answer."),
    "sessions": ("hone.cli.sessions:sessions", "List, read, go on with, copy and remove conversations."),
    "memory": ("hone.cli.memory:memory", "Read and change what Hone knows of you and your work."),
    "skills": ("hone.cli.skills:skills", "List, read, write, install and put away skills."),
    "log": ("hone.cli.log:log", "List what was changed in what Hone knows."),
    "show": ("hone.cli.log:show", "Show one change: by whom, why, from what, and how."),
    "diff": ("hone.cli.log:diff", "Show what the change ID did, as a unified diff."),
    "undo": ("hone.cli.pending:undo", "Take the change ID back, and nothing that came later."),
    "pending": ("hone.cli.pending:pending", "Show what was learned and waits for you."),
    "approve": ("hone.cli.pending:approve", "Let changes that wait take effect."),
    "reject": ("hone.cli.pending:reject", "Turn changes that wait down; they stay in the log."),
    "forget": ("hone.cli.forget:forget", "Withdraw what was learned from a session or a message."),
    "reviews": ("hone.cli.reviews:reviews", "List the reviews: done, at work, to come."),
    "review": ("hone.cli.reviews:review", "Look back over a conversation now, for what is worth keeping."),
    "worker": ("hone.cli.worker:worker", "Do the reviews that are queued, and wait for more."),
    "serve": ("hone.cli.serve:serve", "Serve the page, and an endpoint for other programs."),
    "keys": ("hone.cli.keys:keys", "Store, list and remove the keys of model providers."),
    "config": ("hone.cli.config:config", "Show the settings and which model is used, and why."),
    "trust": ("hone.cli.trust:trust", "Trust FOLDER, or the one you are in; or each FILE as it is shown."),
    "permissions": (
        "hone.cli.permissions:permissions",
        "List what is allowed and denied in this folder, and change it.",
    ),
    "doctor": ("hone.cli.doctor:doctor", "Check the home folder, the model and the sandbox."),
    "demo": ("hone.cli.demo:demo", "Watch Hone work and learn, without a key or a network."),
}
"""The kernel's own commands."""


class Feature(NamedTuple):
    """One feature by name. `after` is the kernel's command that its own follow in the help, `operations` a
    module that `hone serve` loads, `part` a class below `Part`, `hooks` are the methods that it implements,
    `providers` the model providers it brings, `slash` its commands in the chat; nothing else loads it."""

    name: str
    after: str
    commands: Commands
    operations: str = ""
    part: str = ""
    hooks: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    setting: str = ""
    """The setting without which the part has nothing to do, such as "recall.embedder"."""
    slash: Mapping[str, tuple[str, str, str]] = {}
    """Chat commands: name → ("module:object", short help, argument)."""


FEATURES = (
    Feature(
        "checkpoints",
        "sessions",
        {"rewind": ("hone.features.checkpoints.commands:rewind", "Take back what tools did to your files.")},
        operations="hone.features.checkpoints.operations",
        part="hone.features.checkpoints.part:CheckpointsPart",
        hooks=("observer", "tend", "leftovers", "checks", "holdings", "close"),
        slash={
            "rewind": (
                "hone.features.checkpoints.slash:rewind",
                "Take back what tools did to files.",
                "[TURN]",
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
                "Take conversations out as a file, bring them back, draw their tree.",
            )
        },
    ),
    Feature(
        "recall",
        "sessions",
        {
            "recall": (
                "hone.features.recall.commands:recall",
                "Search by meaning, too, and measure how well search finds.",
            )
        },
        part="hone.features.recall.part:RecallPart",
        hooks=("recall", "meanings", "attend", "notify", "finish", "has_work", "work", "checks", "close"),
        setting="recall.embedder",
    ),
    Feature(
        "imports",
        "sessions",
        {"import": ("hone.features.imports.commands:import_", "Bring in conversations with another agent.")},
    ),
    Feature(
        "backends",
        "skills",
        {
            "backends": (
                "hone.features.backends.commands:backends",
                "Memory by key: what keeps it, and how well.",
            )
        },
        part="hone.features.backends.part:MemoryPart",
        hooks=("ready", "tools", "review_tools", "remind", "attend", "notify", "finish", "holdings", "close"),
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
        part="hone.features.templates.part:TemplatesPart",
        hooks=("seed", "resumed", "leftovers", "checks", "holdings"),
    ),
    Feature(
        "curator",
        "skills",
        {
            "curator": (
                "hone.features.curator.commands:curator",
                "See and steer what keeps the learned skills few.",
            )
        },
        part="hone.features.curator.part:CuratorPart",
        hooks=("tend", "count_stale", "holdings"),
    ),
    Feature(
        "experiments",
        "skills",
        {"experiment": ("hone.features.experiments.commands:experiment", "Measure whether a lesson helps.")},
        part="hone.features.experiments.part:ExperimentsPart",
        hooks=("findings", "leftovers", "holdings"),
    ),
    Feature(
        "backups",
        "doctor",
        {
            "backup": ("hone.features.backups.commands:backup", "Copy everything Hone keeps into one FILE."),
            "restore": (
                "hone.features.backups.commands:restore",
                "Make a home of a FILE that hone backup wrote.",
            ),
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
