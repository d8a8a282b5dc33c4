"""Read the images that clients send inside their messages."""

import binascii
from base64 import b64decode
from collections.abc import Sequence

from hone.core.errors import Refused
from hone.core.images import read_image
from hone.core.messages import Image, Message, user
from hone.core.trust import Trust
from hone.runtime.pictures import MOST, check_vision
from hone.settings import Settings


def read_address(address: str) -> Image:
    """Return the image in a data: address, without its metadata. Raises Refused."""
    head, comma, data = address.partition(",")
    if not (head.startswith("data:image/") and head.endswith(";base64") and comma and data.isascii()):
        raise Refused("An image must be in the message, as data:image/…;base64,…")
    try:
        return read_image(b64decode(data, validate=True))
    except binascii.Error as error:
        raise Refused(f"The data of an image is not base64: {error}.") from error


def attach(
    words: str, addresses: Sequence[str], model: str, settings: Settings
) -> tuple[str | Message, Trust | None]:
    """Return the message with its images, and its label if there are any: their source is unknown. Raises
    Refused."""
    if not addresses:
        return words, None
    if len(addresses) > MOST:
        raise Refused(f"A message takes at most {MOST} pictures.")
    check_vision(model, settings)
    return user(words, *map(read_address, addresses)), Trust.FOREIGN
