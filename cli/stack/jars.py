"""Fetch the Java archives of the embedded broker, once.

They are described by ``ivy.xml`` beside this file and resolved by the Ivy in pyspark's ``jars``
folder: no other build tool is needed. The folder of jars contains::

    broker/         Apache Kafka
    connector/      Spark's own Kafka connector, with which the benchmarks compare the job
    ivy/            Ivy's cache

A folder that a site provides may also contain the jars directly, without a subfolder. Each jar is
compared with its pinned SHA-256 after it was fetched and at every use, whatever its origin; only
pinned jars get on a class path. A folder that this module filled has a marker with the descriptor's
hash, and is used while that hash is the same. A folder without the marker is provided by the site
(air-gapped) and never changed. An interrupted download leaves no partial result: jars are collected
in a temporary folder, which is renamed at the end.
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
from cli.stack.pins import pinned, sha256, verified

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Configuration = Literal["broker", "connector"]

_DESCRIPTOR = Path(__file__).with_name("ivy.xml")
# One archive of each configuration; a folder of jars without it is not complete.
_ESSENTIAL: Mapping[Configuration, str] = {
    "broker": "kafka-server-[0-9]*.jar",
    "connector": "spark-sql-kafka-*.jar",
}
# Names and hashes of the jars.
_PINS: Mapping[Configuration, Path] = {
    "broker": Path(__file__).with_name("jars.sha256"),
    "connector": Path(__file__).with_name("connector.sha256"),
}
# File in a folder of archives that this module has filled. Other folders belong to the site.
MARKER = ".complete"
_SHOWN_LINES = 12


def default_folder() -> Path:
    """Return the folder of jars that the settings name."""
    return Settings().jars.absolute()


def broker_jars(folder: Path | None = None) -> list[Path]:
    """Return the jars of the embedded broker; fetch missing jars.

    Parameters
    ----------
    folder
        Folder of jars; ``default_folder()`` by default.

    Raises
    ------
    JarsError
        Jars are missing and could not be fetched, or a jar does not match its pinned hash.
    MissingJavaError
        Jars must be fetched, and the Java runtime is missing.
    """
    return _jars(folder or default_folder(), "broker")


def connector_jars(folder: Path | None = None) -> list[Path]:
    """Return the jars of Spark's own Kafka connector; fetch missing jars, as ``broker_jars``."""
    return _jars(folder or default_folder(), "connector")


def present(folder: Path, configuration: Configuration) -> bool:
    """Return whether a configuration's jars exist and match this version's descriptor."""
    home = home_of(folder, configuration)
    marker = home / MARKER
    if marker.is_file():
        return marker.read_text(encoding="ascii") == _fingerprint()
    return any(home.glob(_ESSENTIAL[configuration]))


def home_of(folder: Path, configuration: Configuration) -> Path:
    """Return the folder that directly contains, or will contain, a configuration's jars."""
    home = folder / configuration
    if not home.exists() and any(folder.glob(_ESSENTIAL[configuration])):
        return folder
    return home


def _jars(folder: Path, configuration: Configuration) -> list[Path]:
    """Return a configuration's jars, sorted by name."""
    if not present(folder, configuration):
        with _locked(folder):
            # Another process may have fetched them while this one waited for the lock.
            if not present(folder, configuration):
                _fetch(folder, configuration)
    return verified_jars(folder, configuration)


def verified_jars(folder: Path, configuration: Configuration) -> list[Path]:
    """Return a configuration's jars; raise JarsError unless they match their pinned hashes."""
    return verified(home_of(folder, configuration), _PINS[configuration])


def pin() -> None:
    """Fetch all jars again, and write their hashes to the lists of this package.

    Used after a change of versions in the descriptor. The hashes only ensure that the archives do
    not change later; compare them with those that the projects publish before committing the lists.
    """
    for configuration, listing in _PINS.items():
        # A new folder, so that no jar fetched earlier is used.
        with tempfile.TemporaryDirectory(prefix="coincide-") as folder:
            fetched = Path(folder) / configuration
            _resolve(Path(folder), configuration, fetched)
            lines = (f"{sha256(jar)}  {jar.name}\n" for jar in sorted(fetched.glob("*.jar")))
            listing.write_text("".join(lines), encoding="ascii")


def _fetch(folder: Path, configuration: Configuration) -> None:
    """Resolve a configuration and move its jars to their folder in one step."""
    for left in folder.glob(f".{configuration}-*"):
        # Left by a killed process: while the lock is held, no other process works here.
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix=f".{configuration}-") as work:
        fetched = Path(work) / "new"
        _resolve(folder, configuration, fetched)
        verified(fetched, _PINS[configuration])
        for path in fetched.glob("*.jar"):
            if path.name not in pinned(_PINS[configuration]):
                raise JarsError(
                    f"{path.name}: was fetched but is not pinned: the descriptor and the lists of "
                    "hashes have different versions; install Coincide again"
                )
        (fetched / MARKER).write_text(_fingerprint(), encoding="ascii")
        home = folder / configuration
        if home.exists():
            home.rename(Path(work) / "old")
        fetched.rename(home)


def _resolve(folder: Path, configuration: Configuration, fetched: Path) -> None:
    """Fetch a configuration's jars into a folder with Ivy; raise JarsError on failure."""
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
            f"the {configuration} jars were not found with the current Ivy settings "
            f"(COINCIDE_IVY_SETTINGS: {Settings().ivy_settings or 'not set'})"
        )


def _run_ivy(command: list[str], configuration: Configuration) -> None:
    """Run Ivy and show its progress; raise JarsError with its last output on failure."""
    console = Console(file=sys.stderr)
    last: list[str] = []
    loaded = 0
    # Command and descriptor belong to this package; paths come from the user's settings.
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
            f"the {configuration} jars could not be fetched; set COINCIDE_IVY_SETTINGS to use a "
            "mirror, or COINCIDE_JARS to a folder that contains them. Last lines of Ivy's "
            "output:\n  " + "\n  ".join(last)
        )


def _settings_option() -> list[str]:
    """Return Ivy's option for the settings file of a site, if it is given."""
    given = Settings().ivy_settings
    if given is None:
        return []
    if not given.is_file():
        raise JarsError(f"COINCIDE_IVY_SETTINGS: {given} is not a file; correct the path")
    return ["-settings", str(given)]


def _ivy_archive() -> Path:
    """Return the Ivy archive of the installed pyspark."""
    # Looked up, not imported: importing pyspark takes a second.
    found = util.find_spec("pyspark")
    folders = found.submodule_search_locations if found else None
    archives = sorted(Path(folders[0]).glob("jars/ivy-*.jar")) if folders else []
    if not archives:
        raise JarsError("pyspark is not installed, or its jars folder does not contain Ivy")
    return archives[-1]


def _fingerprint() -> str:
    """Return the hash of the descriptor."""
    return sha256(_DESCRIPTOR)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder of jars against other processes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Opened for appending: the lock file has no content and is never removed.
        with (folder / ".lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise JarsError(
            f"the jars folder {folder} cannot be created or written: {error.strerror or error}; "
            "use another folder with COINCIDE_JARS"
        ) from error
