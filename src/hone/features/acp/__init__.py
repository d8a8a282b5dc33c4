"""Serve editors over the Agent Client Protocol (ACP), protocol version 1, on standard input and output.

Words: the *editor* is the client at the other end; an *update* is one notification to it about a session; a
*block* is one piece of a prompt.
"""
