# ruff: noqa: INP001 - a script of the image's build, not a package
"""Compile the kernels into numba's cache while the image is built."""

from __future__ import annotations

from spark_jobs.worker.warm_up import main

if __name__ == "__main__":
    main()
