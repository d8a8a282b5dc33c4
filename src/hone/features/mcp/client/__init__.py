"""The client: servers from the settings and from projects, their transports, the catalog, and the tools."""
