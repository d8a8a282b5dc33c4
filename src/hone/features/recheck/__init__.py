"""Recheck: ask about entries that are past their date, or test them with a command in the sandbox.

An entry is *past* when its last day is over. Then it is in no prompt. The owner keeps it without an end,
gives it a new end, or removes it. A *probe* is a command of the owner's that tells whether it still holds.
"""
