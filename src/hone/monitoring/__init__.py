"""What operators see of a server or a worker: metrics, logs and crashes. Never what was said in it.

A family is a metric with all its samples; a sample is one number with its labels.
"""
