"""Read the web as text: pages from public addresses only, and results of the configured search server."""

from hone.tools.web.fetch import web_tools

__all__ = ["web_tools"]
