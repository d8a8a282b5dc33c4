"""What the fake provider says of a request that nobody sends."""

from hone.models.fake_provider.intake import Malformed, parse
from hone.models.fake_provider.shapes import Format
from hone.models.fake_provider.validity import objections


def problems(format: Format, body: bytes) -> list[str]:
    try:
        return objections(parse(format, body))
    except Malformed as malformed:
        return [str(malformed)]
