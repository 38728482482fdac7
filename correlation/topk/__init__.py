"""Continuous top-k set-similarity join (spec: topk)."""
