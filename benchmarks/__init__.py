"""Benchmarks, which compare ratios within one run and never gate a build."""
