"""Folder of the compiled kernels of a checkout; `python -m cli.kernels` prints it.

A compiled kernel contains the code of functions in other files, but numba checks only the file of
the kernel itself: after an update of a checkout, outdated kernels would run. The name of this
folder is therefore a checksum of all source files. An installed package keeps numba's own folder,
because all of its files are replaced together. Processes that are not started by `coincide` or
`make` need `NUMBA_CACHE_DIR`.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
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

    Called before numba is imported. Nothing is done for an installed package, for kernels with
    checked bounds, which numba stores under the same names, and if a source file cannot be read.

    Parameters
    ----------
    environment : dict
        Variables of the process.
    root : Path or None
        Folder that contains this package; by default its present one.
    """
    root = Path(__file__).parents[1] if root is None else root
    is_chosen = bool(environment.get(_FOLDER))
    is_checked = environment.get(_BOUNDS_CHECKED, "0") not in {"", "0"}
    if (root / "pyproject.toml").is_file() and not is_chosen and not is_checked:
        with suppress(OSError):
            environment[_FOLDER] = str(kernel_folder(root))


if __name__ == "__main__":
    print(kernel_folder(Path(__file__).parents[1]))  # noqa: T201 - read by the Makefile
