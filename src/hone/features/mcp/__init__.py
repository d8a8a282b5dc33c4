"""Use the tools of servers that speak the Model Context Protocol, and be one.

server      a program or an address that offers tools, resources and prompts
catalog     what servers offered when they were last seen, and what the owner has approved of it
pin         the digest of a tool's whole wire object, as the owner approved it
quarantine  where a tool is whose wire object is another one than its pin
era         how a server speaks: after a handshake (up to 2025-11-25), or without a state (2026-07-28)
"""
