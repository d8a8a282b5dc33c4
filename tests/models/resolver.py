"""A plugin for the proxy of the tests: every name under .test is this machine."""

from proxy.http.proxy import HttpProxyBasePlugin


class ResolveTests(HttpProxyBasePlugin):
    def resolve_dns(self, host: str, port: int) -> tuple[str | None, tuple[str, int] | None]:
        return ("127.0.0.1" if host.endswith(".test") else None), None
