"""The peer: Hermes Agent as it comes from PyPI. Its own Python runs what is here."""
