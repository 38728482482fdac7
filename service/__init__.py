"""The control plane: streams and what belongs to them over REST, kept in one compacted topic."""
