"""The part that adds search by meaning to a Hone. It does nothing unless an embedder is set."""

from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property

from hone.app import Hone
from hone.core.embedding import Coverage, Embedder, Meanings
from hone.core.errors import HoneError
from hone.core.part import Part
from hone.core.recall import Recall
from hone.features.recall.asking import MeaningRecall
from hone.features.recall.making import VectorMaker
from hone.features.recall.meanings import StoredMeanings
from hone.features.recall.opening import open_embedder


class RecallPart(Part):
    name = "recall"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._embedder: Embedder | None = None

    async def embedder(self) -> Embedder | None:
        """Return the embedder that is set; None without one. Raises SettingsError if it cannot be used."""
        if self._embedder is None:
            hone = self._hone
            self._embedder = await open_embedder(hone.settings, hone.home, hone.clock)
        return self._embedder

    @cached_property
    def maker(self) -> VectorMaker:
        hone = self._hone
        return VectorMaker(
            hone.stores.vectors,
            self.embedder,
            hone.stores.claims,
            hone.clock,
            hone.say,
            lambda: hone.background.is_busy,
            self.stored.make_later,
        )

    @cached_property
    def stored(self) -> StoredMeanings:
        hone = self._hone
        return StoredMeanings(hone.stores.vectors, self.embedder, hone.clock, hone.say, self.notify)

    def recall(self, recall: Recall) -> Recall:
        return MeaningRecall(recall, self.stored)

    def meanings(self) -> Meanings | None:
        return self.stored

    def attend(self) -> None:
        if not self._hone.stores.closed:
            self.maker.attend()

    def notify(self) -> None:
        if "maker" in vars(self):
            self.maker.notify()

    async def finish(self) -> None:
        if not self._hone.stores.closed:
            await self.maker.finish()

    async def has_work(self) -> bool:
        try:
            embedder = await self.embedder()
            return embedder is not None and (await self._hone.stores.vectors.coverage(embedder.id)).left > 0
        except HoneError:
            return False

    async def work(self) -> None:
        with suppress(HoneError):  # the next process tries again, and `hone doctor` says why
            await self.maker.fill()

    async def checks(self) -> Sequence[tuple[bool, str]]:
        try:
            embedder = await self.embedder()
        except HoneError as error:
            return [(False, f"search: {error} Until then it goes by words alone.")]
        found = await self._hone.stores.vectors.coverage(embedder.id) if embedder else Coverage()
        return [(True, f"search: {found.made:,} of {found.made + found.left:,} messages have a vector")]

    async def close(self) -> None:
        if "maker" in vars(self):
            await self.maker.close()
        if self._embedder:
            await self._embedder.close()
