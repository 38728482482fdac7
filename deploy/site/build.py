"""Building the site with Sphinx."""

from __future__ import annotations

from pathlib import Path

from sphinx.cmd.build import build_main

CONFIGURATION = Path(__file__).parent
DOCS = CONFIGURATION.parents[1] / "docs"


def build(folder: Path, docs: Path = DOCS) -> int:
    """Build the site; every warning is an error.

    Parameters
    ----------
    folder : Path
        Folder of the site.
    docs : Path, optional
        Folder of the pages.

    Returns
    -------
    int
        Exit code of Sphinx: 0 if it found no problem.
    """
    # The generated pages depend on the code, not on their files: all pages are read again.
    strict = ["--fresh-env", "--fail-on-warning", "--keep-going", "--quiet"]
    caches = ["-d", str(folder.with_name(f"{folder.name}-doctrees"))]
    return build_main([*strict, *caches, "-c", str(CONFIGURATION), str(docs), str(folder)])
