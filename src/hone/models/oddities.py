"""Explain responses that are neither an answer nor a refusal: redirects, web pages, empty bodies."""

from urllib.parse import urlsplit

from hone.core.errors import ModelError, Rejected, Unreachable, Unusable
from hone.models.endpoint import Endpoint, refusal
from hone.models.http import Response


def explain(endpoint: Endpoint, response: Response, text: str) -> ModelError:
    """Return the error for a status or body that no provider documents."""
    who, status = endpoint.provider, response.status
    packing = response.headers.get("content-encoding", "identity").lower()
    if packing != "identity":
        return refusal(endpoint, status, f"the reason is compressed ({packing}), which Hone did not ask for")
    if 300 <= status < 400:
        return _redirected(endpoint, response)
    if is_page(text) or status == 511:
        return _page(endpoint, text)
    return Rejected(f"{who} answered {status} instead of 200, without an answer. {_check(endpoint)}")


def explain_mute(endpoint: Endpoint, start: str) -> ModelError:
    """Return the error for a body without any event. `start` is its beginning."""
    who = endpoint.provider
    if is_page(start):
        return _page(endpoint, start)
    lines = [
        line for line in start.splitlines() if line.strip() and not line.startswith((":", "event:", "id:"))
    ]
    if lines:
        said = endpoint.quote("\n".join(lines))
        return Unreachable(f"{who} sent something that is neither JSON nor an event: {said}.")
    if start.strip():
        return Unreachable(f"{who} ended the connection before its answer began.")
    return Unusable(f"{who} sent an empty answer. {_check(endpoint)}")


def is_page(text: str) -> bool:
    return text.lstrip("\ufeff \r\n\t")[:1] == "<"


def _page(endpoint: Endpoint, text: str) -> ModelError:
    title = text.partition("<title>")[2].partition("</title>")[0]
    shown = f" ({endpoint.quote(title)})" if title.strip() else ""
    return Rejected(
        f"{endpoint.provider} answered with a web page{shown}. You may have to log in to this network first. "
        f"{_check(endpoint)}"
    )


def _redirected(endpoint: Endpoint, response: Response) -> ModelError:
    """Name the new address without its query, which may hold secrets."""
    target = response.headers.get("location", "")
    parts = urlsplit(target)
    where = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts.netloc else parts.path
    place = f"to {endpoint.quote(where)}" if where else "without an address"
    return Rejected(
        f"{endpoint.provider} redirects {place} ({response.status}). Hone does not follow, so that your key "
        f"reaches no other server. {_check(endpoint)}"
    )


def _check(endpoint: Endpoint) -> str:
    return f"Check the address in use: {endpoint.quote(endpoint.url)}."
