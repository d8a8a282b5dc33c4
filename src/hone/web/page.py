"""Serve the page: one document, its style and its scripts, all from this folder."""

from collections.abc import Mapping
from importlib.resources import files

from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hone.core.messages import digest

FOLDER = files("hone.web") / "static"
DOCUMENT = "index.html"
TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
ASK_AGAIN = "no-cache"
"""A browser keeps a file, and asks each time whether it is still current."""


class StaticFile(Struct, frozen=True):
    data: bytes
    type: str
    tag: str


def read() -> Mapping[str, StaticFile]:
    """Return all files of the page by name. Nothing else has an address."""
    found = {each.name: each.read_bytes() for each in FOLDER.iterdir() if _type(each.name)}
    return {
        name: StaticFile(data, _type(name), f'"{digest(data)[:32]}"') for name, data in sorted(found.items())
    }


def _type(name: str) -> str:
    return TYPES.get(name.rpartition(".")[2], "")


def routes() -> list[Route]:
    known = read()

    async def document(request: Request) -> Response:
        return _sent(request, known[DOCUMENT])

    async def file(request: Request) -> Response:
        found = known.get(request.path_params["file"])
        if found is None:
            raise HTTPException(404, "The page has no such file.")
        return _sent(request, found)

    return [Route("/", document), Route("/static/{file}", file)]


def _sent(request: Request, file: StaticFile) -> Response:
    headers = {"etag": file.tag, "cache-control": ASK_AGAIN}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.data, media_type=file.type, headers=headers)
