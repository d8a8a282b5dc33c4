"""Recall measured: questions with known answers, asked of the search.

A *person* is a bundled home: conversations, questions about them, and the messages that hold each answer.
*Evidence* is the messages that answer a question.
"""
