"""Traces for OpenTelemetry, by its conventions for generative AI, without content.

A span is one step with its beginning, its end and its attributes; those of one request form a trace.
"""
