"""Recent results of conditions, and live feeds of them."""
