"""Add images to a message: read the files, remove metadata, and lower the message's label to their trust."""

import asyncio
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from hone.core.errors import Refused
from hone.core.images import READ, SUFFIXES, read_image
from hone.core.messages import Image, Message, user
from hone.core.trust import Trust, lowest
from hone.core.visible import visible
from hone.core.work import FileLabels
from hone.files.atomic import open_file
from hone.models.vision import is_blind
from hone.settings import Settings

MOST = 20
"""The most images in one message."""


class PictureSource(Protocol):
    """The parts of a Hone needed to send images."""

    @property
    def settings(self) -> Settings: ...

    @property
    def provenance(self) -> FileLabels: ...


async def attach(
    words: str, files: Sequence[Path | str], model: str, source: PictureSource
) -> tuple[Message, Trust]:
    """Return the message with its images, and its label. Later, nobody could tell the words from the images,
    so both get the lower label. Raises Refused."""
    check_vision(model, source.settings)
    if len(files) > MOST:
        raise Refused(f"A message takes at most {MOST} pictures.")
    found = [await asyncio.to_thread(_read, Path(file), source.provenance) for file in files]
    parts = [image for image, _ in found]
    return user(words, *parts), lowest((Trust.OWNER, *(label for _, label in found)))


def check_vision(model: str, settings: Settings) -> None:
    """Raise Refused if a model is known not to see images."""
    own = settings.models.get(model)
    blind = is_blind(model) if own is None or own.vision is None else not own.vision
    if blind:
        raise Refused(
            f"{model} cannot see pictures. Choose another model, or set vision = true under "
            f'[models."{model}"] in hone.toml if it can.'
        )


def find_pictures(words: str, folder: Path) -> list[Path]:
    """Return the images that a message names: as @path, or by a path that is the whole message, which a
    terminal pastes when a file is dropped on it. Raises Refused for a missing @path."""
    found = []
    for word in split_words(words):
        path = word[1:].rstrip(",.;:!?)") if word.startswith("@") else word
        if not path.lower().endswith(SUFFIXES):
            continue
        place = folder / os.path.expanduser(path.removeprefix("file://"))
        if word.startswith("@") and not place.is_file():
            raise Refused(f"There is no picture {visible(path)}. Without the @ it is sent as a word.")
        if word.startswith("@") or (path.startswith(("/", "~/", "file:///")) and place.is_file()):
            found.append(place)
    return list(dict.fromkeys(found))


def split_words(words: str) -> list[str]:
    """Split as a shell does, so that quotes and backslashes keep names with spaces together."""
    try:
        return shlex.split(words.replace("\n", " "), comments=False)
    except ValueError:  # an apostrophe is not always a quote
        return words.split()


def _read(path: Path, labels: FileLabels) -> tuple[Image, Trust]:
    name = visible(path.name)
    path = Path(os.path.expanduser(path)).absolute()
    try:
        with open_file(path, follow=True) as file:
            data = file.read(READ + 1)
    except OSError as error:
        raise Refused(f"{name} cannot be read: {error.strerror}.") from error
    if len(data) > READ:
        raise Refused(f"{name} has more than {READ / 1e6:.0f} MB. Make it smaller.")
    return read_image(data, name), labels.of_file(Path(os.path.realpath(path)), data)
