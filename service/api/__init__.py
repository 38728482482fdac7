"""The REST API: routes, headers and status codes."""
