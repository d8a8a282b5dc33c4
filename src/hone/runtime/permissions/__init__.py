"""Decide what the tools of a conversation may do: by mode, by rule, or by asking the owner.

- Request: what a tool is about to do.
- Mode: how much is done without a question: plan, ask, auto or full.
- Rule: what the owner allows or denies: a tool and a pattern.
- Ruling: what is decided about a request, and why.
- Consent: the owner's yes to a host: in a message that names it, by an answer, or by a rule.
"""
