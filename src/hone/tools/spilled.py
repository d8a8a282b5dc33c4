"""Read long results of tools that lie in a database elsewhere as if they were files of this home."""

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
"""The path of a long result among the arguments of a call. The home in it may be that of another machine."""


class SpillReader(Wrapper, frozen=True):
    """Gives a file tool the results that its call names. Each lies in the home for as long as the call takes,
    so that erasing it from the database is enough."""

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
        """Return the arguments with paths of this home in place of those that are in the database."""
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
            return None  # the tool says that there is no such file
