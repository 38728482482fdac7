"""Java archives pinned by their SHA-256; only pinned archives are put on a class path.

A list has the format of `sha256sum`: one line per archive, with its hash and its name.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from cli.errors import JarsError


def pinned(listing: Path) -> dict[str, str]:
    """Return the hashes of the archives in a list, by name."""
    lines = listing.read_text(encoding="ascii").splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def verified(folder: Path, listing: Path) -> list[Path]:
    """Check the listed archives in a folder and return their paths, sorted by name.

    Other archives in the folder are ignored.

    Parameters
    ----------
    folder
        Folder of the archives.
    listing
        List of their names and hashes.

    Raises
    ------
    JarsError
        When an archive is missing, cannot be read, or has another hash.
    """
    found = []
    for name, digest in sorted(pinned(listing).items()):
        path = folder / name
        try:
            actual = sha256(path)
        except FileNotFoundError:
            raise JarsError(
                f"{path}: is missing; put the archive there, or let `coincide jars` fetch all of "
                "them into another folder"
            ) from None
        except OSError as error:
            raise JarsError(f"{path}: cannot be read: {error.strerror}") from error
        if actual != digest:
            raise JarsError(
                f"{path}: is not the archive that this version was tried with: its SHA-256 is "
                f"{actual}, and must be {digest}; remove it, and take it from a source you trust"
            )
        found.append(path)
    return found


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
