"""The program of a slot: conditions over shared buffers, watermarks, state."""
