"""Folder of the compiled kernels of a checkout; `python -m cli.kernels` prints it.

A compiled kernel contains the code of functions in other files, but numba compares its own file
only: after an update of a checkout it would run former code. This folder has the checksum of all
source files in its name. Files of an installed package are replaced together, so numba's own folder
serves it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import MutableMapping

_FOLDER = "NUMBA_CACHE_DIR"
_BOUNDS_CHECKED = "NUMBA_BOUNDSCHECK"


def kernel_folder(root: Path) -> Path:
    """Return the folder of the kernels of the sources below a folder.

    Parameters
    ----------
    root : Path
        A checkout.
    """
    found = hashlib.sha256()
    for path in sorted((root / "correlation").rglob("*.py"), key=str):
        found.update(path.read_bytes())
    return root / ".cache" / "numba" / found.hexdigest()[:16]


def choose_kernel_folder(environment: MutableMapping[str, str], root: Path | None = None) -> None:
    """Let numba store its kernels in the folder of this checkout, unless another one is chosen.

    Called before numba is imported. Nothing is done for an installed package, or for kernels with
    checked bounds, which numba does not keep apart from others.

    Parameters
    ----------
    environment : dict
        Variables of the process.
    root : Path or None
        Folder that contains this package; by default its present one.
    """
    root = Path(__file__).parents[1] if root is None else root
    is_checkout = (root / "pyproject.toml").is_file()
    if is_checkout and not environment.get(_FOLDER) and not environment.get(_BOUNDS_CHECKED):
        environment[_FOLDER] = str(kernel_folder(root))


if __name__ == "__main__":
    print(kernel_folder(Path(__file__).parents[1]))  # noqa: T201 - read by the Makefile
