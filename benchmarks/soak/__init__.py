"""A day of stream time at full speed: results must be exact, memory and files must level off."""
