"""Payback: what each lesson cost and what it saved, and which entries nobody needs.

A *bill* is everything that model calls cost in a period. Its parts are the conversations themselves, the
lessons in their prompts, and learning. A *lesson* is an entry of the journal or a skill. Costs that belong to
no lesson are *unassigned*. Money is counted in whole picodollars, so that rounding loses nothing.
"""
