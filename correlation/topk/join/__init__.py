"""The join of one key: inverted lists, search for candidates, minimal stock."""
