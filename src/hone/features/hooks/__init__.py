"""Run the owner's commands at events: before and after a tool, at the end of a turn, when something was
learned.

hook    a command in hone.toml or in a project's .hone/hooks.toml, with the event it runs at
ruling  what follows from a hook's exit code: go on, refuse, or tell somebody something
"""
