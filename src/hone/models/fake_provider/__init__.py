"""A scripted model behind real HTTP on loopback, in every wire format.

async with FakeProvider(lines("Good morning.")) as fake: …           fake.url, fake.requests, fake.invalid
python -m hone.models.fake_provider --script FILE --latency 0.05     prints its URL on the first line
"""

from hone.models.fake_provider.server import FakeProvider

__all__ = ["FakeProvider"]
