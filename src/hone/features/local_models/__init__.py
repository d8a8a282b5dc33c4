"""Run a small model on this machine, without a key and without a server.

- Engine: the server of llama.cpp, in a process of its own.
- ModelCache: the folder below the home that keeps weights and the engine.
- Weights: a model that can be fetched, with its hash, its size and its window.
"""
