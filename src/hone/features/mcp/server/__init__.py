"""Serve what Hone knows to other agents, over MCP.

- Client: another agent, by the name that the owner gave it. It is an actor that only proposes.
- era: the protocol before and since 2026-07-28: with a handshake, or with an envelope in every request.
- ServedSkill: a skill as it leaves, cleared of secrets; its digests are those of what leaves.
"""
