"""Exit codes that no error of ours has."""

# Ended by SIGINT, as shells report it: 128 and the number of the signal.
INTERRUPTED = 130
