"""A small HTTP/1.1 client: POST bytes, stream the answer, reuse connections, enforce deadlines."""

from hone.models.http.client import Exchange, Http, Response

__all__ = ["Exchange", "Http", "Response"]
