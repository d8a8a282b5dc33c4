"""One JSON-RPC 2.0 peer, shared by MCP and ACP: both sides may ask, over pipes or HTTP, within limits.

Words: a *call* is a request or, without an id, a notification; a *reply* answers a request; a *channel*
carries whole messages.
"""
