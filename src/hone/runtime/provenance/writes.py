"""Observe the files that tools write."""

from pathlib import Path

from hone.core.messages import digest
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.work import FileLabels
from hone.runtime.provenance.recording import taint_file
from hone.runtime.provenance.records import Active, Records, activate
from hone.runtime.provenance.view import name
from hone.stores.tainted import TrustedContent


class WriteObserver:
    """Observes writes. It blocks while it reads and writes, so call it in a thread. Raises StoreError, since
    nothing foreign may be written without a record."""

    def __init__(self, records: Records, labels: FileLabels) -> None:
        self._records = records
        self._labels = labels
        self._writing: dict[tuple[str, Path], Active] = {}

    def before(self, path: Path, content: bytes | None, context: ToolContext) -> None:
        active = activate(path, context)
        active.before = content
        if active.tainted:
            self._records.taint_session(active.session)
            self._records.begin(active)
            self._records.commits.settle(path, active.id)
        elif content is not None and self._records.is_concerned(path):
            active.was_foreign = self._labels.of_file(path, content) is Trust.FOREIGN
        self._writing[active.session, path] = active

    def after(self, path: Path, data: bytes, context: ToolContext) -> None:
        active = self._writing.pop((context.header.id, path), None) or activate(path, context)
        records = self._records
        if active.tainted or active.was_foreign:
            records.add([taint_file(path, data, active.before, active.origin)])
        elif records.is_concerned(path) and self._labels.of_file(path, data) is Trust.FOREIGN:
            # A clean conversation wrote it, so any overlap is a coincidence.
            root = name(records.folders.root(path) or path)
            records.store.trust([TrustedContent(digest(data), name(path), "clean", root)])
        if active.id:
            records.end(active)
            records.forget(active)
        records.views.changed()
