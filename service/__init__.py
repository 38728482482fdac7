"""The control plane: streams, conditions and templates over REST, stored in a compacted topic."""
