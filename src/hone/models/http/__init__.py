"""A small HTTP/1.1 client: POST bytes, stream the answer, reuse connections, enforce deadlines."""

from hone.models.http.bounds import LOCAL, REMOTE, ReplyBounds, ReplyWatch
from hone.models.http.client import Exchange, Http, Response

__all__ = ["LOCAL", "REMOTE", "Exchange", "Http", "ReplyBounds", "ReplyWatch", "Response"]
