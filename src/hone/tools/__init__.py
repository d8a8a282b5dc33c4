"""Tools of the agent, and wrappers around them. A tool is a typed function; see `define`."""
