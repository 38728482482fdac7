"""Evaluation of a slot's conditions over shared buffers: watermarks, state, totals."""
