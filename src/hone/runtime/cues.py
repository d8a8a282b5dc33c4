"""Find what in the owner's words is worth a look: a wish to remember, a correction, a complaint, a statement."""


def find_cue(text: str) -> str:
    """Return what the words are, in a few words of ours; empty if they are nothing of the kind."""
    return ""
