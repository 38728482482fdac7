"""Relevance analysis of event queries at compile time: progress and keep functions (TSA)."""
