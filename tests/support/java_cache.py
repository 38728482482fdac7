"""Java's classes, which the jobs of all tests share."""

from __future__ import annotations

import os
from pathlib import Path

JAVA_CACHE = Path(__file__).parents[2] / ".cache" / "java"


def share_java_classes() -> None:
    """Let all jobs of this process load the classes, and store them if they are missing."""
    os.environ.setdefault("COINCIDE_JAVA_CACHE", str(JAVA_CACHE))
