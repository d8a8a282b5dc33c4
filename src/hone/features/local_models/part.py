"""The part that adds local models to a Hone."""

from collections.abc import Mapping, Sequence

from hone.app import Hone
from hone.core.holding import Backup, Holding
from hone.core.model import Connection
from hone.core.part import Connect, Part
from hone.features.local_models.local import PROVIDER, Local
from hone.features.local_models.weights import ModelCache
from hone.models.wrappers import FREE


class LocalModelsPart(Part):
    name = "local_models"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._engines: dict[str, Local] = {}

    def models(self) -> Mapping[str, Connect]:
        return {PROVIDER: self._connect}

    def holdings(self) -> Sequence[Holding]:
        keeps, stays = "weights of local models", "they run on this machine"
        return (Holding("models", keeps, places=("models/",), backup=Backup.LEFT_OUT, stays=stays),)

    async def close(self) -> None:
        for engine in self._engines.values():
            await engine.close()

    def _connect(self, name: str) -> Connection:
        """Use one engine per model, however many conversations it has; it starts with the first request."""
        hone = self._hone
        files = ModelCache(hone.home / "models").ready(name)
        engine = self._engines.setdefault(name, Local(files, hone.clock))
        price = hone.models.price(f"{PROVIDER}/{name}") or FREE
        window = min(hone.settings.window or files.window, files.window)
        return Connection(hone.models.patient(engine, price), window=window, plain=True, local=True)
