"""The chat's own commands, each imported when it is first typed."""
