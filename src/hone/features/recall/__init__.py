"""Recall by meaning: what makes vectors of text, what the owner agreed to, and how well search finds.

- Embedder: makes a vector of a text, on this machine or at an endpoint.
- Weights: the files of a small BERT that runs on this machine.
- Host: where text is sent. Nothing is sent to one that the owner did not agree to.
- Person: a bundled home: conversations, questions about them, and the messages that hold each answer.
- Evidence: the messages that answer a question.
"""
