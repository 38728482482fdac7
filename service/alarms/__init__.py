"""Recent results of conditions, and live streams of them."""
