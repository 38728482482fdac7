"""Digests of the files of the console, whose pictures are in the documentation.

`make screenshots` writes them beside the pictures; `sha256sum -c docs/images/console.sha256` checks
them, too.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSOLE = ROOT / "service" / "console"


def digests_of(folder: Path, root: Path) -> dict[str, str]:
    """Return the SHA-256 of each file in a folder, by the path below `root`, sorted by path."""
    files = sorted(it for it in folder.rglob("*") if it.is_file())
    return {it.relative_to(root).as_posix(): sha256(it.read_bytes()).hexdigest() for it in files}


def main() -> None:
    """Print a line for each file of the console, in the form of sha256sum."""
    for path, digest in digests_of(CONSOLE, ROOT).items():
        print(f"{digest}  {path}")  # noqa: T201 - written to a file by the Makefile


if __name__ == "__main__":
    main()
