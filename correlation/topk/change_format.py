"""Format of the changes of top-k lists; read without numpy and numba."""

from __future__ import annotations

KIND = "topk_similarity"
CE_TYPE = "coincide.topk.v1"
# Format version of a change.
VERSION = 1
