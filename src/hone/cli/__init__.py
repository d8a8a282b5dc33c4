"""The `hone` command: one module per noun, none of them loaded before it is asked for."""
