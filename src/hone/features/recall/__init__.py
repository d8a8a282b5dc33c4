"""Recall by meaning: what makes vectors of text, and what the owner agreed to.

- Embedder: makes a vector of a text, on this machine or at an endpoint.
- Weights: the files of a small BERT that runs on this machine.
- Host: where text is sent. Nothing is sent to one that the owner did not agree to.
"""
