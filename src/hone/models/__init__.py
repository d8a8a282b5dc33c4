"""Providers of answers: one module per wire format, and what carries the bytes."""
