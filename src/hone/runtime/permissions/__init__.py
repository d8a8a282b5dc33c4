"""Decide what the tools of a conversation may do: by mode, by rule, or by asking the owner."""
