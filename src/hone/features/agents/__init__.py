"""Named helpers for the `delegate` tool: agents/*.md in Hone's home, and those of trusted projects.

agent file  Markdown with front matter: name, description, tools and model; its body is the instructions
"""
