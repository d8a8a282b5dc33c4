"""A week of everyday use: stories of owners who talk with Hone, driven through the real product.

`python -m benchmarks.week` plays each story on its surface with a scripted model that is honest but
imperfect, and counts what the owner stated and the next prompt holds. It measures triggers, gates and
storage, not a model's judgment.
"""
