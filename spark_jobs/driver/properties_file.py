"""Pass Spark's properties in a file, so that their values are not on a command line."""

from __future__ import annotations

import os
import shlex
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
_DEFAULT = "pyspark-shell"
_ESCAPED = {
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\f": "\\f",
    " ": "\\ ",
    "=": "\\=",
    ":": "\\:",
    "#": "\\#",
    "!": "\\!",
}


@contextmanager
def submitted(properties: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Write the properties to a file for a JVM that is started within the context.

    `spark-submit` reads properties that it needs before Java runs (memory, Java options, jars) from
    the file as it does from `--conf`. Only the owner can read the file. It is removed afterwards.

    Parameters
    ----------
    properties
        Spark properties by name.
    folder
        Folder of the file.
    """
    path = folder / "spark.properties"
    lines = "".join(f"{_escape(name)}={_escape(value)}\n" for name, value in properties.items())
    private = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(private, "w", encoding="utf-8") as file:
        file.write(lines)
    given = os.environ.get(_ARGUMENTS)
    # A site's spark-defaults.conf stays in effect.
    option = shlex.join(["--load-spark-defaults", "--properties-file", str(path)])
    os.environ[_ARGUMENTS] = f"{option} {given or _DEFAULT}"
    try:
        yield
    finally:
        if given is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = given
        path.unlink()


def _escape(text: str) -> str:
    """Escape a name or a value for a Java properties file, including leading spaces."""
    return "".join(_ESCAPED.get(character, character) for character in text)
