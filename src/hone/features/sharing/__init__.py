"""Share skills: write them where other agents read them, and export them as archives.

- Grant: something in a skill that lets another agent act without asking.
- Leak: words in a text for a shared file that reveal something about the owner or the machine.
"""
