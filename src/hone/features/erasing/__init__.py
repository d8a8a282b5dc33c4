"""Erase for good: a conversation, a lesson, a memory, or words, wherever this home stores them.

erasure:    what is to be erased, and the record that something was
occurrence: a place that holds it
proof:      a search of the bytes of every file of the home, which finds nothing
"""
