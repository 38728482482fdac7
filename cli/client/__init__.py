"""Commands that talk to a service and a broker."""
