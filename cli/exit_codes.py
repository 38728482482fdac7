"""Exit codes that do not belong to a `CliError`."""

# Ended by SIGINT, as shells report it: 128 plus the number of the signal.
INTERRUPTED = 130
