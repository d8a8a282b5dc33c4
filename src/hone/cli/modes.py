"""Permission modes for people: what each one means, and a warning about the last one."""

from hone.core.permissions import MEANINGS, Mode

WARNING = (
    "Mode full: Hone never asks. It may change every file that you may change, run any command "
    "and use the network."
)


def describe(mode: Mode) -> str:
    """Say which mode holds now, with a warning if it needs one."""
    return WARNING if mode is Mode.FULL else f"Mode {mode}: it {MEANINGS[mode]}."


def table(current: Mode) -> list[str]:
    """List the modes, the current one marked."""
    rows = [f"{'*' if mode is current else ' '} {mode:<5} {MEANINGS[mode]}" for mode in Mode]
    return [*rows, "Switch with: /mode NAME"]
