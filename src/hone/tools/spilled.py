"""Read long results of tools that are stored in a remote database as if they were files of this home."""

import asyncio
import json
import os
import shutil
from pathlib import Path

from hone.core.documents import SPILL, Documents
from hone.core.errors import StoreError
from hone.core.messages import ToolCall
from hone.core.regex import regex
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.core.value import replace
from hone.files.atomic import write
from hone.tools.wrappers import Wrapper

_NAMED = regex(r'"(?:[^"\\]*/)?spill/(?:[0-9a-f]{16}/)?(?P<name>[A-Za-z0-9_-]{1,64}-[0-9a-f]{16}\.txt)"')
"""The path of a long result among a call's arguments. Its home may be on another machine."""


class SpillReader(Wrapper, frozen=True):
    """Provides a file tool with the results that its call names. Each is in the home only during the call, so
    that erasing it from the database is enough."""

    documents: Documents
    home: Path

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if not _NAMED.search(call.arguments):
            return await self.tool.run(call, context)
        folder = self.home / SPILL.folder / os.urandom(8).hex()
        try:
            arguments = await asyncio.to_thread(self._fetch, call.arguments, folder)
            return await self.tool.run(replace(call, arguments=arguments), context)
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _fetch(self, arguments: str, folder: Path) -> str:
        """Return the arguments with paths in this home instead of those in the database."""
        for found in list(_NAMED.finditer(arguments)):
            data = self._read(found["name"])
            if data is not None and not os.path.lexists(found.group().strip('"')):
                path = folder / found["name"]
                write(path, data, durable=False)
                arguments = arguments.replace(found.group(), json.dumps(str(path), ensure_ascii=False))
        return arguments

    def _read(self, name: str) -> bytes | None:
        try:
            return self.documents.read(SPILL, name)
        except StoreError:
            return None  # the tool reports that there is no such file
