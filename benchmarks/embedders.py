"""Open embedders by name for a measurement: weights are those of the home that HONE_HOME names."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hone.core.clock import SystemClock
from hone.features.recall.evaluation import Prepare
from hone.features.recall.opening import make_embedder
from hone.features.recall.searches import prepare_with
from hone.settings import home_folder, read


@asynccontextmanager
async def preparing(name: str) -> AsyncIterator[Prepare]:
    """Yield a function that makes the searches of a scratch home, with this embedder or by words alone."""
    clock, home = SystemClock(), home_folder()
    embedder = make_embedder(name, read(home), home, clock) if name else None
    try:
        yield prepare_with(name, embedder, clock)
    finally:
        if embedder is not None:
            await embedder.close()
