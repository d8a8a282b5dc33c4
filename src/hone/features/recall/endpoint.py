"""Embed text at an endpoint that speaks OpenAI's `/v1/embeddings`: Ollama, vLLM, LM Studio, OpenAI."""

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from hone.core.clock import Clock
from hone.core.embedding import Purpose, pack
from hone.core.errors import ModelError, Overflow, Rejected, Unusable
from hone.core.model import Usage
from hone.core.regex import regex
from hone.models.endpoint import Endpoint, count, exchange
from hone.models.http import Http, ReplyWatch
from hone.models.http.route import is_loopback
from hone.models.wrappers import Patience, find_delay

MOST_TEXTS, MOST_CHARACTERS = 64, 64_000
"""The most texts of one request."""
LONGEST, SHORTEST = 1_600, 200
"""The most characters of a text. Many models read 512 tokens; a text too long for one is cut in half."""
BLANK = "."
"""Replaces a text without words, which OpenAI refuses."""
DIMENSIONS = {"text-embedding-3-small": 512, "text-embedding-3-large": 1_024}
"""Models that support shorter vectors, which Hone requests: each number of each message takes a byte."""

_TOO_MUCH = regex(
    r"too (?:large|long)|less than \d+ tokens|physical batch size|maximum (?:allowed )?batch size",
    re.IGNORECASE,
)
"""How servers say that an input is too long, besides a model's refusals."""


class TrainedPrefixes(Struct, frozen=True):
    """The prefixes that a model was trained with, before a question and before a passage."""

    question: str = ""
    passage: str = ""


_RETRIEVE = "Represent this sentence for searching relevant passages: "
PREFIXES: Mapping[str, TrainedPrefixes] = {
    "nomic-embed": TrainedPrefixes("search_query: ", "search_document: "),
    "embeddinggemma": TrainedPrefixes("task: search result | query: ", "title: none | text: "),
    "mxbai-embed": TrainedPrefixes(_RETRIEVE),
    "snowflake-arctic-embed": TrainedPrefixes(_RETRIEVE),
    "bge-small-en": TrainedPrefixes(_RETRIEVE),
    "bge-base-en": TrainedPrefixes(_RETRIEVE),
    "bge-large-en": TrainedPrefixes(_RETRIEVE),
    "e5-small": TrainedPrefixes("query: ", "passage: "),
    "e5-base": TrainedPrefixes("query: ", "passage: "),
    "e5-large": TrainedPrefixes("query: ", "passage: "),
    "qwen3-embedding": TrainedPrefixes(
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:"
    ),
}
"""By a part of the model's name, as published by their authors."""

Report = Callable[[Usage], Awaitable[None]]
"""Hears the cost of a request."""


class _Vector(Struct):
    index: int
    embedding: list[float]


class _Count(Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Answer(Struct):
    data: list[_Vector]
    usage: _Count | None = None


async def _ignore(usage: Usage) -> None:
    """Ignore the cost."""


class EndpointEmbedder:
    def __init__(
        self,
        http: Http,
        clock: Clock,
        endpoint: Endpoint,
        model: str,
        patience: Patience,
        report: Report = _ignore,
    ) -> None:
        self._http = http
        self._clock = clock
        self._endpoint = endpoint
        self._model = model
        self._patience = patience
        self._report = report
        self._asked = DIMENSIONS.get(model, 0)
        self._prefixes = find_prefixes(model)
        self._size = 0

    @property
    def id(self) -> str:
        """Return the id. The prefixes are part of it: they change the vectors."""
        prefixed = "+prefix" if self._prefixes.passage else ""
        return f"{urlsplit(self._endpoint.url).netloc}/{self._model}:{self._asked or 'full'}{prefixed}"

    @property
    def host(self) -> str:
        return find_host(self._endpoint.url)

    async def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[bytes]:
        prefix = getattr(self._prefixes, purpose)
        found: list[bytes] = []
        for batch in divide([text[:LONGEST].strip() or BLANK for text in texts]):
            found += await self._embed(batch, prefix)
        return found

    async def close(self) -> None:
        await self._http.close()

    async def _embed(self, texts: Sequence[str], prefix: str, longest: int = LONGEST) -> list[bytes]:
        """Embed texts. If it is too much for the model, send fewer texts, and cut one that is too long in
        half."""
        try:
            return await self._patiently([prefix + text[:longest] for text in texts])
        except Overflow:
            if len(texts) > 1:
                half = len(texts) // 2
                first = await self._embed(texts[:half], prefix, longest)
                return [*first, *await self._embed(texts[half:], prefix, longest)]
            if longest <= SHORTEST:
                raise
            return await self._embed(texts, prefix, min(longest, len(texts[0])) // 2)

    async def _patiently(self, texts: Sequence[str]) -> list[bytes]:
        attempt = 1
        while True:
            try:
                return await self._ask(texts)
            except ModelError as error:
                if _TOO_MUCH.search(str(error)):
                    raise Overflow(str(error)) from error
                delay = find_delay(self._patience, error, attempt)
                if delay is None:
                    raise self._advise(error) from error
                attempt += 1
                await self._clock.sleep(delay)

    async def _ask(self, texts: Sequence[str]) -> list[bytes]:
        body = msgspec.json.encode(self._request(texts))
        watch = ReplyWatch(self._http.bounds, self._endpoint.provider)
        async with aclosing(exchange(self._http, self._clock, self._endpoint, body, watch)) as events:
            data = b"".join([data async for datas in events for data in datas])
        answer = self._read(data)
        used = answer.usage or _Count()
        await self._report(Usage(input=count(used.prompt_tokens or used.total_tokens)))
        return self._arrange(answer.data, len(texts))

    def _request(self, texts: Sequence[str]) -> dict[str, object]:
        asked = {"dimensions": self._asked} if self._asked else {}
        return {"model": self._model, "encoding_format": "float", **asked, "input": texts}

    def _read(self, data: bytes) -> _Answer:
        try:
            return msgspec.json.decode(data, type=_Answer)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            said = self._endpoint.quote(data[:2_000].decode("utf-8", "replace"))
            raise self._odd(f"its answer has another form: {error}; it begins with {said[:80]}") from error

    def _arrange(self, vectors: Sequence[_Vector], wanted: int) -> list[bytes]:
        """Check the vectors against each other, and put them into the order of the texts."""
        if sorted(each.index for each in vectors) != list(range(wanted)):
            raise self._odd(f"{wanted} texts were sent and {len(vectors)} vectors came back")
        sizes = {len(each.embedding) for each in vectors}
        expected = self._asked or self._size or max(sizes)
        if sizes != {expected} or not expected:
            raise self._odd(f"vectors of {min(sizes)} numbers came back instead of {expected}")
        self._size = expected
        return [pack(each.embedding) for each in sorted(vectors, key=lambda each: each.index)]

    def _odd(self, what: str) -> Unusable:
        return Unusable(f"{self._endpoint.provider} did not embed the text: {what}.")

    def _advise(self, error: ModelError) -> ModelError:
        """Say what to do if the endpoint refuses (400, 404): the model is missing or cannot embed."""
        if type(error) is not Rejected or "(40" not in str(error):
            return error
        pull = f" Fetch it with: ollama pull {self._model}" if self._endpoint.provider == "ollama" else ""
        return Rejected(
            f"{error} {self._model} was asked for embeddings at {self._endpoint.url}.{pull} "
            "Choose another embedder with: hone recall use PROVIDER/MODEL"
        )


def find_prefixes(model: str) -> TrainedPrefixes:
    name = model.lower()
    return next((each for part, each in PREFIXES.items() if part in name), TrainedPrefixes())


def find_host(url: str) -> str:
    """Return the host that text is sent to, or "" for this machine. No name is resolved."""
    if url.startswith(("unix:", "http+unix:")):
        return ""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    return "" if is_loopback(host) else host or url


def divide(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield the texts in order, in batches that fit a request."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == MOST_TEXTS or size + len(text) > MOST_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch
