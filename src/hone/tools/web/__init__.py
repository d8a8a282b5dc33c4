"""The web as text: pages fetched from public addresses only, and results of a search server of one's own."""

from hone.tools.web.fetch import web_tools

__all__ = ["web_tools"]
