"""The REST interface: routes, headers and status codes."""
