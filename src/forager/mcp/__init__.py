"""The MCP server: what was crawled, for AI agents. A thin adapter over the services of the API."""
