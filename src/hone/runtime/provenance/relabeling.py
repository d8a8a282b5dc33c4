"""Relabel conversations after the owner has trusted the folder they were held in.

A conversation gets the labels that it would have had if the folder had been trusted from the start, or it
stays as it is: one text from elsewhere in it is enough.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hone.core.errors import HoneError
from hone.core.fingerprints import Fingerprints
from hone.core.ids import SessionId
from hone.core.messages import Role, ToolCall, ToolResult
from hone.core.provenance import identify
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import text_to_path
from hone.runtime.provenance.areas import Areas, Incomparable
from hone.runtime.provenance.corpus import find_unexplained
from hone.runtime.provenance.records import FindReach, Records
from hone.runtime.provenance.sweep import Sweeper
from hone.runtime.provenance.view import is_overlapping, name

_FAULTS = (HoneError, OSError, ValueError, LookupError, MemoryError, RecursionError, Incomparable)

Conversations = Mapping[SessionId, Transcript]


def relabel(transcript: Transcript, is_withheld: Callable[[ToolResult], bool]) -> Transcript | None:
    """Return a conversation with withheld text as local text; None if anything else in it is foreign. The
    agent's words after withheld text get no better label than that text."""
    nodes: list[Node] = []
    floor, has_withheld = Trust.OWNER, False
    for node in transcript.nodes:
        made = node
        if node.trust is Trust.FOREIGN:
            result = node.message.result
            follows = has_withheld and node.message.role is Role.ASSISTANT
            if node.message.template or not (is_withheld(result) if result else follows):
                return None
            has_withheld = True
            made = replace(node, trust=Trust.LOCAL if result else min(Trust.AGENT, floor))
        floor = min(floor, made.trust_floor)
        nodes.append(made)
    return None if floor is Trust.FOREIGN else replace(transcript, nodes=tuple(nodes))


@dataclass
class Tainted:
    """The foreign text that conversations have left in a folder."""

    lines: Fingerprints = field(default_factory=Fingerprints)
    paths: set[str] = field(default_factory=set)


class Relabeling:
    """Finds the conversations whose foreign text all comes from one folder. It blocks while it reads, so call
    it in a thread."""

    def __init__(self, records: Records, areas: Areas, reach: FindReach, folder: Path) -> None:
        self._records = records
        self._areas = areas
        self._reach = reach
        self._folder = folder

    def find_clean(self, talks: Conversations) -> Conversations:
        """Return the conversations that would be clean if the folder had been trusted, with their new labels.
        A conversation that has read another's text is as clean as that one."""
        try:
            if self._records.folders.trusts(self._folder):
                self._sweep()
            return self._find_clean(talks)
        except _FAULTS:
            return {}

    def _find_clean(self, talks: Conversations) -> Conversations:
        clean = {id: made for id, talk in talks.items() if (made := relabel(talk, self._is_withheld))}
        while clean:
            known = self._load_tainted(clean.keys())
            tainted = [id for id in clean if self._has_tainted(talks[id], known)]
            if not tainted:
                break
            for id in tainted:
                del clean[id]
        return clean

    def _is_withheld(self, result: ToolResult) -> bool:
        folder = self._find_reason(result)
        if folder is None or not folder:
            return folder is not None
        return self._records.folders.covers(self._folder, text_to_path(folder))

    def _find_reason(self, result: ToolResult) -> str | None:
        store = self._records.store
        return store.withheld(identify(result.call, result.text)) if store.exists else None

    def _sweep(self) -> None:
        """Record what a killed process left unrecorded, as the first label in a trusted folder does."""
        records = self._records
        Sweeper(records.store, records.views, records.folders).sweep(self._folder)

    def _load_tainted(self, clean: Collection[SessionId]) -> Tainted:
        """Return what other conversations have tainted in the folder. Raises Incomparable if one of them
        still runs a command there, or has left something that cannot be compared."""
        store, found = self._records.store, Tainted()
        for window in store.windows():
            if not window.ended and window.session not in clean and self._overlaps(window.place):
                raise Incomparable
        for _, text in store.texts(name(self._folder)):
            if text.kind == "same" or text.session in clean:
                continue
            if not text.complete and os.path.exists(text.path):
                raise Incomparable
            found.lines.add(text.units, text.at)
            if text.kind == "file":
                found.paths.add(text.path)
        return found

    def _overlaps(self, place: str) -> bool:
        return is_overlapping(place, name(self._folder))

    def _has_tainted(self, talk: Transcript, known: Tainted) -> bool:
        """Tell whether a conversation has read what another one tainted, by its lines or from its file."""
        views, folder = self._records.views, self._folder
        calls = {call.id: call for message in talk for call in message.calls}
        for result in self._find_results(talk):
            if self._find_path(calls.get(result.call)) in known.paths:
                return True
            spans = self._areas.find_common(folder, self._reach(folder), result.text)
            spans |= known.lines.find(result.text)
            if find_unexplained(spans, folder, views.trusted, views.is_tainted_folder):
                return True
        return False

    def _find_path(self, call: ToolCall | None) -> str:
        """Return the file that a call names; empty if it names none."""
        try:
            path = json.loads(call.arguments or "{}").get("path") if call else None
        except (ValueError, AttributeError, RecursionError):
            return ""
        return name(os.path.realpath(self._folder / path)) if isinstance(path, str) and path else ""

    def _find_results(self, talk: Transcript) -> Iterator[ToolResult]:
        """Yield the results that came from the folder."""
        for node in talk.nodes:
            result = node.message.result
            if result and node.trust is Trust.FOREIGN and self._find_reason(result):
                yield result
