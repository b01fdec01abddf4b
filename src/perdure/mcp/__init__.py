"""The Model Context Protocol: the contract as tools and resources of the official SDK. Needs the extra `mcp`."""
