"""Decide from a skill's checks whether it is used: switch it off, switch it on again, or leave it.

A skill that has checks is listed and read only after its exact files have passed. Nothing of it runs outside
the sandbox, and nothing runs that no owner approved: pending changes are not in a skill's files.
"""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from hone.app import Hone
from hone.core.errors import HoneError
from hone.core.events import Emit, Notice
from hone.core.ledger import Actor, ChangeKind, ChangeQuery, ChangeState, Ledger, Target, skill
from hone.core.skill import ARCHIVED, FAILED
from hone.core.visible import one_line, visible
from hone.features.checks.records import CheckRecord, CheckRecords
from hone.features.checks.running import CheckReport, list_checks, run_checks
from hone.knowledge import places
from hone.knowledge.folding import Draft, Files
from hone.knowledge.skills.facts import SET, digest_files, facts
from hone.sandbox.choice import Sandbox

DAY = timedelta(days=1)
ROWS = 20
"""How many lines of output to show with a skill: the last ones."""


class SkillChecker:
    def __init__(self, hone: Hone, sandbox: Sandbox | None = None) -> None:
        self._hone = hone
        self._keeper = hone.keeper
        self._clock = hone.clock
        self._records = CheckRecords(hone.home)
        self._sandbox = sandbox or Sandbox(hidden=(hone.home,), clock=hone.clock)
        self._turn = asyncio.Lock()

    @property
    def _is_off(self) -> bool:
        return self._hone.settings.learning.checks == "off" or bool(self._keeper.rules.closed)

    async def settle(self, names: Sequence[str]) -> None:
        """Check the skills whose files have not passed yet, before anybody sees them."""
        if self._is_off:
            return
        async with self._turn:
            for name in names:
                files = await self._keeper.files(skill(name))
                if not self._is_settled(files, self._records.get(name)):
                    self._hone.say(await self._check(name, files))

    def _is_settled(self, files: Files, record: CheckRecord | None) -> bool:
        if not list_checks(files):
            return True
        known, made = facts(files), digest_files(files)
        if known.archived:
            return not known.failed or read_failure(known.failed)[0] == made
        if record is None or record.digest != made:
            return False
        return record.passed or record.overridden or (bool(record.unrun) and not self._is_over(record, DAY))

    async def check(self, names: Sequence[str]) -> list[tuple[bool, str]]:
        """Run checks now, whatever was recorded."""
        if self._is_off:
            return []
        found: list[tuple[bool, str]] = []
        async with self._turn:
            for name in names or await self._hone.stores.catalog.with_checks():
                files = await self._keeper.files(skill(name))
                if list_checks(files):
                    await self._check(name, files)
                    found.append(self._describe(name, self._records.get(name)))
        return found

    async def tend(self, emit: Emit) -> None:
        """Repeat checks that ran long ago, also of skills that are switched off."""
        days = self._hone.settings.learning.check_days
        if self._is_off or not days:
            return
        try:
            for name in await self._hone.stores.catalog.with_checks():
                async with self._turn:
                    if said := await self._check_again(name, timedelta(days=days)):
                        emit(Notice(said))
        except HoneError:
            return

    async def _check_again(self, name: str, term: timedelta) -> str:
        record = self._records.get(name)
        if record and not self._is_over(record, term):
            return ""
        files = await self._keeper.files(skill(name))
        known = facts(files) if files else None
        put_away = known and known.archived and not known.failed
        return await self._check(name, files) if list_checks(files) and not put_away else ""

    def _is_over(self, record: CheckRecord, term: timedelta) -> bool:
        """Tell whether this much time has passed; a clock that was set back ends it, too."""
        return not timedelta() <= self._clock.now() - record.at < term

    async def _check(self, name: str, files: Files) -> str:
        """Run the checks of these files and act on the result. Return a sentence if anything changed."""
        report = await run_checks(name, files, self._sandbox, self._clock)
        said, overridden = "", False
        if not report.unrun:
            overridden = not report.passed and await is_overridden(
                self._keeper.ledger, skill(name), files, digest_files(files)
            )
            said = "" if overridden else await self._follow(name, digest_files(files), report)
        now = self._clock.now()
        record = CheckRecord(
            report.digest, now, report.passed, report.count, overridden, report.unrun, report.summary
        )
        self._records.save(name, record)
        return said

    async def _follow(self, name: str, checked: str, report: CheckReport) -> str:
        """Switch the skill off or on, unless its files have changed by now."""

        async def choose(before: Files) -> Draft | None:
            known = facts(before) if before else None
            if known is None or digest_files(before) != checked or (known.archived and not known.failed):
                return None
            after = {path: data for path, data in before.items() if path not in (ARCHIVED, FAILED)}
            if not report.passed:
                after |= {ARCHIVED: SET, FAILED: write_failure(report)}
            if after == before:
                return None
            kind = ChangeKind.RECOVER if report.passed else ChangeKind.DEMOTE
            return Draft(skill(name), kind, before, after, reason=report.summary or "its checks pass")

        entry = await self._keeper.mark(name, choose)
        if entry is None:
            return ""
        if report.passed:
            return f"The skill {name} is switched on again: its checks pass."
        return f"The skill {name} is switched off: {report.summary}. See why: hone skills show {name}"

    def _describe(self, name: str, record: CheckRecord | None) -> tuple[bool, str]:
        if record is None or record.unrun:
            return (
                False,
                f"{name}: its checks were not run: {record.unrun if record else 'nobody knows why'}.",
            )
        if record.passed:
            return True, f"{name}: {_count(record.count)} passed."
        return False, f"{name}: {record.summary}. See its output: hone skills show {name}"

    async def list(self) -> list[dict[str, object]]:
        """Return every skill with checks: their number, their last run, and its result."""
        found: list[dict[str, object]] = []
        for name in await self._hone.stores.catalog.with_checks():
            files, record = await self._keeper.files(skill(name)), self._records.get(name)
            at = f"{record.at.astimezone():%Y-%m-%d}" if record else "never"
            shown = (await self.describe(name))[0].removeprefix("checks: ").partition(" on ")[0]
            found.append({"name": name, "checks": len(list_checks(files)), "at": at, "result": shown})
        return found

    async def describe(self, name: str) -> Sequence[str]:
        """Return what to show with a skill, one line each."""
        files = await self._keeper.files(skill(name))
        if not list_checks(files):
            return ()
        known, record = facts(files), self._records.get(name)
        if known.failed:
            place = self._hone.home / places.folder_of(skill(name), archived=True)
            served = bool(self._hone.settings.database)
            return tuple(_describe_failure(name, known.failed, "" if served else str(place)))
        if self._is_off:
            return ("checks: switched off in your settings",)
        if record is None or record.digest != digest_files(files):
            return ("checks: not run yet",)
        if record.unrun:
            return (f"checks: not run, because {record.unrun}",)
        day = f"{record.at.astimezone():%Y-%m-%d}"
        if record.passed:
            return (f"checks: {_count(record.count)} passed on {day}",)
        return (f"checks: {record.summary} on {day}; you use the skill anyway",)


def _count(number: int) -> str:
    return "1 check" if number == 1 else f"{number} checks"


def write_failure(report: CheckReport) -> bytes:
    """Return the fact that says why a skill is switched off: the digest of its files, a line, the output."""
    return "\n".join((report.digest, report.summary, report.output)).encode("utf-8", "replace")


def read_failure(fact: str) -> tuple[str, str, str]:
    """Return the digest of the files that failed, how they failed, and the output."""
    made, _, rest = fact.partition("\n")
    summary, _, output = rest.partition("\n")
    return made, summary, output


def _describe_failure(name: str, fact: str, place: str) -> Iterator[str]:
    _, summary, output = read_failure(fact)
    yield f"switched off: {one_line(summary, 300)}"
    yield from (f"  {row}" for row in visible(output).rstrip("\n").split("\n")[-ROWS:] if row)
    if place:
        yield f"Its files are in {visible(place)}. When you have fixed them: hone skills check {name}"
    else:
        yield f"To fix it: hone skills restore {name}, then hone pull, edit its files and hone push"
    yield f"To use it anyway: hone skills restore {name}"


async def is_overridden(ledger: Ledger, target: Target, files: Files, made: str) -> bool:
    """Tell whether the owner has switched a skill on again after these exact files had failed."""
    if not files or facts(files).archived:
        return False
    back: datetime | None = None
    for entry in await ledger.entries(ChangeQuery(target=target)):
        change = entry.change
        delta = next((each for each in change.deltas if each.path == ARCHIVED), None)
        if delta is None or change.standing is ChangeState.PENDING:
            continue
        if delta.after is None:
            if change.author.actor is not Actor.OWNER:
                return False
            back = entry.at
        else:
            failure = next((each.after for each in change.deltas if each.path == FAILED), None)
            if not (back and failure and change.kind is ChangeKind.DEMOTE):
                return False
            fact = (await ledger.contents({failure}))[failure].decode()
            return read_failure(fact)[0] in (made, "")
    return False
