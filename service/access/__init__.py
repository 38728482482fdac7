"""Access control: roles, API keys, tokens of an identity provider, limits of requests."""
