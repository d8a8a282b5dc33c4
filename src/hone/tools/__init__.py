"""What the agent can do, and the wrappers around it. A tool is a typed function; see `define`."""
