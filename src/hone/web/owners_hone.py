"""A Hone for another owner of the same database: a user of a team, or an owner whose work a worker does."""

from functools import cached_property
from pathlib import Path
from typing import Any

from hone.app import Hone
from hone.core.monitor import Monitors
from hone.core.value import replace
from hone.learning.budget import Bounds
from hone.settings import Settings
from hone.stores.home import Stores


class OwnersHone(Hone):
    """Works on stores that another Hone opened, with the models and settings of `hone`."""

    def __init__(
        self, home: Path, hone: Hone, stores: Stores, settings: Settings | None = None, **choices: Any
    ) -> None:
        chosen = settings or hone.settings
        super().__init__(
            home=home,
            model=hone.models,
            # A memory backend keeps the memories of many people, by name.
            settings=replace(chosen, memory=replace(chosen.memory, owner=stores.owner)),
            clock=hone.clock,
            **{"folder": home, **choices},
        )
        self.learning_cap: float | None = None
        """US dollars that learning may cost today; None: as much as the settings say."""
        self._given = stores
        self._monitors = hone.monitors

    @property
    def bounds(self) -> Bounds:
        usual = super().bounds
        return (
            usual if self.learning_cap is None else replace(usual, daily=min(usual.daily, self.learning_cap))
        )

    @cached_property
    def stores(self) -> Stores:
        return self._given

    @cached_property
    def monitors(self) -> Monitors:
        return self._monitors
