"""Fetch the Java archives that Spark and the embedded broker need, once.

They are described by ``ivy.xml`` beside this file and resolved by the Ivy that lies in pyspark's
own ``jars`` folder: no other build tool is needed. In the folder of jars stand::

    spark/          the Kafka connector of Spark and what it needs beside pyspark's own jars
    broker/         Apache Kafka
    ivy/            Ivy's cache

A folder of a site's own may also hold the jars of ``spark`` themselves, without the folder below.
Each jar is compared with the SHA-256 that is pinned for it, after it was fetched and whenever it is
used, wherever it comes from; only pinned jars get on a class path. A folder that this module filled
holds a marker with the descriptor's hash, and is used while that hash is the same. A folder without
the marker is a site's own (air-gapped) and never touched. An interrupted download leaves nothing
half done: jars are collected beside their place and moved there as a whole.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.status import Status

from cli.errors import JarsError
from cli.settings import Settings
from cli.stack.java import find_java
from spark_jobs.driver.jars import CONNECTOR, pinned, sha256, verified
from spark_jobs.errors import JarsMismatchError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Configuration = Literal["spark", "broker"]

MARKER = ".complete"
_DESCRIPTOR = Path(__file__).with_name("ivy.xml")
# One archive of each configuration without which a folder of jars is surely not complete.
_ESSENTIAL: Mapping[Configuration, str] = {
    "spark": "spark-sql-kafka-*.jar",
    "broker": "kafka-server-[0-9]*.jar",
}
# Names and hashes of the jars.
_PINS: Mapping[Configuration, Path] = {
    "spark": CONNECTOR,
    "broker": Path(__file__).with_name("jars.sha256"),
}
_SHOWN_LINES = 12


def default_folder() -> Path:
    """Return the folder of jars that the settings name."""
    return Settings().jars.absolute()


def spark_jars(folder: Path | None = None) -> list[Path]:
    """Return the jars of a Spark session that reads and writes Kafka, fetched where missing.

    Parameters
    ----------
    folder
        Folder of jars; ``default_folder()`` by default.

    Raises
    ------
    JarsError
        They are not there and could not be fetched, or one of them is not the pinned one.
    MissingJavaError
        Fetching needs a Java runtime and there is none.
    """
    return _jars(folder or default_folder(), "spark")


def broker_jars(folder: Path | None = None) -> list[Path]:
    """Return the jars of the embedded broker, fetched where missing; errors as ``spark_jars``."""
    return _jars(folder or default_folder(), "broker")


def present(folder: Path, configuration: Configuration) -> bool:
    """Tell whether a configuration's jars are there and belong to this version's descriptor."""
    home = home_of(folder, configuration)
    marker = home / MARKER
    if marker.is_file():
        return marker.read_text(encoding="ascii") == _fingerprint()
    return any(home.glob(_ESSENTIAL[configuration]))


def home_of(folder: Path, configuration: Configuration) -> Path:
    """Return the folder that holds, or will hold, the jars of a configuration themselves."""
    home = folder / configuration
    if not home.exists() and any(folder.glob(_ESSENTIAL[configuration])):
        return folder
    return home


def _jars(folder: Path, configuration: Configuration) -> list[Path]:
    """Return a configuration's jars in the order of their names."""
    if not present(folder, configuration):
        with _locked(folder):
            # Another process may have fetched them while this one waited for the lock.
            if not present(folder, configuration):
                _fetch(folder, configuration)
    return verified_jars(folder, configuration)


def verified_jars(folder: Path, configuration: Configuration) -> list[Path]:
    """Return a configuration's jars where they are; raise JarsError unless they are the pinned."""
    return _verified(home_of(folder, configuration), configuration)


def _verified(home: Path, configuration: Configuration) -> list[Path]:
    """Return the pinned jars of a folder; raise JarsError where one is missing or another."""
    try:
        return verified(home, _PINS[configuration])
    except JarsMismatchError as error:
        raise JarsError(str(error)) from error


def pin() -> None:
    """Fetch all jars anew, and write their hashes into the lists of this package.

    For a change of versions in the descriptor. The hashes say that the archives stay the same from
    now on; compare them with what their projects publish before the lists are committed.
    """
    for configuration, listing in _PINS.items():
        # Nothing that was fetched earlier counts.
        with tempfile.TemporaryDirectory(prefix="coincide-") as folder:
            fetched = Path(folder) / configuration
            _resolve(Path(folder), configuration, fetched)
            lines = (f"{sha256(jar)}  {jar.name}\n" for jar in sorted(fetched.glob("*.jar")))
            listing.write_text("".join(lines), encoding="ascii")


def _fetch(folder: Path, configuration: Configuration) -> None:
    """Resolve a configuration and put its jars in place as a whole."""
    for left in folder.glob(f".{configuration}-*"):
        # Of a process that was killed: nobody else works here while the lock is held.
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{configuration}-") as work:
        fetched = Path(work) / "new"
        _resolve(folder, configuration, fetched)
        _verified(fetched, configuration)
        for path in fetched.glob("*.jar"):
            if path.name not in pinned(_PINS[configuration]):
                raise JarsError(
                    f"{path.name}: was fetched but is not pinned; the descriptor and the lists of "
                    "hashes are of different versions: install Coincide again"
                )
        (fetched / MARKER).write_text(_fingerprint(), encoding="ascii")
        home = folder / configuration
        if home.exists():
            home.rename(Path(work) / "old")
        fetched.rename(home)


def _resolve(folder: Path, configuration: Configuration, fetched: Path) -> None:
    """Let Ivy fetch a configuration's jars into a folder; raise JarsError when it cannot."""
    fetched.mkdir()
    command = [
        str(find_java().path),
        "-jar",
        str(_ivy_archive()),
        *_settings_option(),
        "-ivy",
        str(_DESCRIPTOR),
        "-cache",
        str(folder / "ivy"),
        "-confs",
        configuration,
        "-types",
        "jar",
        "bundle",
        "-retrieve",
        f"{fetched}/[artifact]-[revision].[ext]",
    ]
    _run_ivy(command, configuration)
    if not any(fetched.glob(_ESSENTIAL[configuration])):
        raise JarsError(
            f"the {configuration} jars were not found where the Ivy settings in force look "
            f"(COINCIDE_IVY_SETTINGS: {Settings().ivy_settings or 'not set'})"
        )


def _run_ivy(command: list[str], configuration: Configuration) -> None:
    """Run Ivy and show what it is at; raise JarsError with its last words when it fails."""
    console = Console(file=sys.stderr)
    last: list[str] = []
    loaded = 0
    # Command and descriptor are this package's own; paths come from the user's settings.
    with (
        Status(f"Java archives ({configuration}): resolving", console=console) as status,
        subprocess.Popen(  # noqa: S603
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process,
    ):
        for line in process.stdout or ():
            said = line.strip()
            # Ivy prints lines of dots as bytes arrive.
            if said.strip(". "):
                last = [*last[1 - _SHOWN_LINES :], said]
            if said.startswith("found "):
                status.update(f"Java archives ({configuration}): found {said.split()[1]}")
            elif "[SUCCESSFUL ]" in said:
                loaded += 1
                status.update(f"Java archives ({configuration}): {loaded} fetched")
    if process.returncode != 0:
        raise JarsError(
            f"the {configuration} jars could not be fetched; with a mirror of your own set "
            "COINCIDE_IVY_SETTINGS, without a network set COINCIDE_JARS to a folder that has "
            "them. Ivy's last words:\n  " + "\n  ".join(last)
        )


def _settings_option() -> list[str]:
    """Return Ivy's option for a site's own settings file, where one is given."""
    given = Settings().ivy_settings
    if given is None:
        return []
    if not given.is_file():
        raise JarsError(f"COINCIDE_IVY_SETTINGS names {given}, which is not a file")
    return ["-settings", str(given)]


def _ivy_archive() -> Path:
    """Return the Ivy that lies in the installed pyspark."""
    # Looked up, not imported: importing pyspark takes a second.
    found = util.find_spec("pyspark")
    folders = found.submodule_search_locations if found else None
    archives = sorted(Path(folders[0]).glob("jars/ivy-*.jar")) if folders else []
    if not archives:
        raise JarsError("pyspark is not installed, or its jars folder holds no Ivy")
    return archives[-1]


def _fingerprint() -> str:
    """Return the hash of the descriptor."""
    return sha256(_DESCRIPTOR)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes out of the folder of jars."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Opened for appending: the lock file has no content and is never removed.
        with (folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise JarsError(
            f"the folder of jars {folder} cannot be made or written: {error.strerror or error}; "
            "name another one in COINCIDE_JARS"
        ) from error
