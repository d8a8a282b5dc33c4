"""`hone permissions`: list and change the rules for a folder, and try out what they decide."""

import os
from collections.abc import Iterator

import click

from hone.app import Hone
from hone.cli.context import in_home
from hone.cli.help_formatter import CommandGroup
from hone.cli.options import MODES
from hone.cli.output import lay_out, screen_width, to_json, wrap_rows
from hone.core.errors import Refused
from hone.core.permissions import MEANINGS, Action, Mode, Request
from hone.core.visible import path_to_text, visible
from hone.files.opening import find_path
from hone.runtime.danger import danger
from hone.runtime.permissions.decide import Decision, Ruling
from hone.runtime.permissions.factory import SourcedRule
from hone.runtime.permissions.project import Kind
from hone.runtime.permissions.rules import FAMILIES, Rule, parse_rule

EPILOG = """\b
Rules:
  write_file: docs/**      files below docs, for patch too
  read_file: ~/.netrc      this file, in searches too
  terminal: git status     this command
  terminal: npm run *      this command with more words
  web_fetch: *.python.org  these hosts, in commands too
  network: npm ci          this command, with the network

A deny rule beats every allow rule, in every mode. A wildcard never allows places that
run by themselves or hold secrets, such as .git/hooks or .env: name those. Each part of
a compound command must be allowed. A project's own .hone/permissions.toml can deny;
what it allows counts after `hone trust` has shown it to you.

\b
Examples:
  hone permissions
  hone permissions allow "terminal: make test"
  hone permissions deny "write_file: migrations/**"
  hone permissions allow "web_fetch: *.org" --everywhere

\b
What would happen, and why:
  hone permissions test terminal "git push -f"
"""
_EVERYWHERE = click.option("--everywhere", is_flag=True, help="In every folder, not only in this one.")
_ACTIONS = {
    "read_file": Action.READ,
    "write_file": Action.WRITE,
    "terminal": Action.RUN,
    "execute_code": Action.RUN,
    "web_fetch": Action.FETCH,
}


@click.group(cls=CommandGroup, invoke_without_command=True, epilog=EPILOG)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def permissions(ctx: click.Context, as_json: bool) -> None:
    """List what is allowed and denied in this folder, and change it."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(_list, as_json=as_json)


@click.command()
@in_home
async def _list(hone: Hone, as_json: bool) -> list[str]:
    found = [*hone.permissions.sources(hone.folder)]
    if as_json:
        rules = [
            {"kind": each.kind, "rule": str(each.rule), "source": each.source, "counts": each.counts}
            for each in found
        ]
        return [
            to_json(
                {"mode": hone.mode, "network": hone.settings.sandbox_in(hone.folder).network, "rules": rules}
            )
        ]
    return list(wrap_rows((*_head(hone), *_rules(found)), screen_width()))


def _head(hone: Hone) -> Iterator[str]:
    yield f"Folder:  {visible(path_to_text(hone.folder))}"
    yield f"Mode:    {hone.mode}: {MEANINGS[hone.mode]}"
    yield f"Network: {hone.settings.sandbox_in(hone.folder).network}"
    yield ""


def _rules(found: list[SourcedRule]) -> Iterator[str]:
    if not found:
        yield "There are no rules yet. `hone permissions --help` shows how to add one."
        return
    rows = [(each.kind, visible(str(each.rule)), _source(each)) for each in found]
    yield from lay_out(("", "rule", "from"), rows, screen_width())
    if not all(each.counts for each in found):
        yield ""
        yield "Rules that are not approved do not count. `hone trust` shows the file and asks you."


def _source(each: SourcedRule) -> str:
    return each.source if each.counts else f"{each.source} (not approved)"


@permissions.command()
@click.argument("rule")
@_EVERYWHERE
@in_home
async def allow(hone: Hone, rule: str, everywhere: bool) -> list[str]:
    """Allow what RULE names without asking."""
    return [_add(hone, "allow", parse_rule(rule), everywhere=everywhere)]


@permissions.command()
@click.argument("rule")
@_EVERYWHERE
@in_home
async def deny(hone: Hone, rule: str, everywhere: bool) -> list[str]:
    """Deny what RULE names, in every mode."""
    return [_add(hone, "deny", parse_rule(rule), everywhere=everywhere)]


def _add(hone: Hone, kind: Kind, rule: Rule, *, everywhere: bool) -> str:
    hone.permissions.rules.add(_key(hone, everywhere=everywhere), kind, rule)
    verb = "Allowed" if kind == "allow" else "Denied"
    option = " --everywhere" if everywhere else ""
    back = f'hone permissions remove "{visible(str(rule))}"{option}'
    return f"{verb} {_where(everywhere=everywhere)}: {visible(str(rule))}. Undo it with: {back}"


@permissions.command()
@click.argument("rule")
@_EVERYWHERE
@in_home
async def remove(hone: Hone, rule: str, everywhere: bool) -> list[str]:
    """Remove RULE, whether it allows or denies."""
    parsed = parse_rule(rule)
    if not hone.permissions.rules.remove(_key(hone, everywhere=everywhere), parsed):
        raise Refused(
            f"There is no such rule {_where(everywhere=everywhere)}: {parsed}. "
            "Rules of hone.toml and of a project's file are changed in those files."
        )
    return [f"Removed {_where(everywhere=everywhere)}: {visible(str(parsed))}."]


def _key(hone: Hone, *, everywhere: bool) -> str:
    return "" if everywhere else path_to_text(hone.folder)


def _where(*, everywhere: bool) -> str:
    return "everywhere" if everywhere else "in this folder"


@permissions.command()
@click.argument("tool")
@click.argument("subject")
@click.option("--mode", type=click.Choice(MODES), help="Try it in this mode.")
@click.option("--network", is_flag=True, help="The command asks for the network.")
@in_home
async def test(hone: Hone, tool: str, subject: str, mode: str | None, network: bool) -> list[str]:
    """Say what would happen if TOOL were used on SUBJECT.

    SUBJECT is a path, a command or a URL.
    """
    request = await _request(hone, tool, subject, network=network)
    permissions = hone.permissions.create(hone.folder, confined=False)
    if mode:
        permissions.switch(Mode(mode))
    return [*_decided(permissions.judge(request), permissions.mode)]


async def _request(hone: Hone, tool: str, subject: str, *, network: bool) -> Request:
    action = _ACTIONS.get(FAMILIES.get(tool, tool), Action.USE)
    if action in (Action.READ, Action.WRITE):
        try:
            with find_path(hone.folder, subject) as place:
                return Request(tool, action, str(place.path))
        except (OSError, ValueError) as error:
            reason = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)
            raise Refused(f"{subject} cannot be looked up: {reason}.") from error
    if action is not Action.RUN:
        return Request(tool, action, subject)
    found = danger(subject, str(hone.folder)) if tool == "terminal" else None
    confined, _ = await hone.sandbox()
    doubts = [*([f"It {found.reason}."] if found else []), *([] if confined else ["No sandbox confines it."])]
    return Request(tool, action, subject, doubts=tuple(doubts), network=network)


def _decided(ruling: Ruling, mode: Mode) -> Iterator[str]:
    said = {Decision.ALLOW: "allowed", Decision.ASK: "asks you", Decision.DENY: "refused"}
    reason = ruling.reason or "Hone does not need to ask."
    yield visible(f"{mode} mode: {said[ruling.decision]}. {reason}")
    if ruling.decision is Decision.ASK:
        yield "Where nobody can be asked: refused."
    for rule in ruling.rules:
        yield visible(f'To allow it for good: hone permissions allow "{rule}"')
