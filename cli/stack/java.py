"""Find the Java runtime for Spark and the embedded broker, or explain how to install it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import MissingJavaError

if TYPE_CHECKING:
    from collections.abc import Mapping

MINIMUM_MAJOR = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
# The first start of a Java runtime from a cold disk can take seconds.
_TIMEOUT_SECONDS = 30
# Debian dropped Java 17 with this release.
_DEBIAN_WITHOUT_17 = 13


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: the path of its ``java`` and its major version."""

    path: Path
    major: int


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the Java runtime of JAVA_HOME, otherwise of PATH, in the order that Spark uses.

    Parameters
    ----------
    environment
        Environment variables; those of the process by default.

    Raises
    ------
    MissingJavaError
        The runtime is missing, does not run, or is older than Java 17; the message names the
        command that installs a runtime on this system.
    """
    variables = os.environ if environment is None else environment
    path = _java_path(variables)
    if path is None:
        raise MissingJavaError(f"Java {MINIMUM_MAJOR} or newer was not found; {_advice()}")
    try:
        # The path comes from the user's JAVA_HOME or PATH.
        said = subprocess.run(  # noqa: S603
            [path, "-version"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingJavaError(f"{path} does not run ({error}); {_advice()}") from error
    major = parse_major(said.stderr + said.stdout)
    if major is None:
        raise MissingJavaError(f"{path} does not print its version; {_advice()}")
    if major < MINIMUM_MAJOR:
        raise MissingJavaError(
            f"Java {MINIMUM_MAJOR} or newer is required, but {path} is Java {major}; {_advice()}"
        )
    return Java(path=path, major=major)


def parse_major(version_text: str) -> int | None:
    """Return the major version in the output of ``java -version``, or None."""
    found = _VERSION.search(version_text)
    return int(found.group(1)) if found else None


def install_line(system: str, os_release: Mapping[str, str]) -> str:
    """Return the command that installs a Java runtime.

    Parameters
    ----------
    system
        Name of the system as ``platform.system()`` returns it.
    os_release
        Fields of /etc/os-release; empty if the file is missing.
    """
    if system == "Darwin":
        return 'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"'
    family = {os_release.get("ID", ""), *os_release.get("ID_LIKE", "").split()}
    if family & {"debian", "ubuntu"}:
        release = os_release.get("VERSION_ID", "")
        newest = os_release.get("ID") == "debian" and (
            not release.isdecimal() or int(release) >= _DEBIAN_WITHOUT_17
        )
        return f"sudo apt-get install openjdk-{21 if newest else 17}-jre-headless"
    if family & {"fedora", "rhel", "centos"}:
        return "sudo dnf install java-21-openjdk-headless"
    return "install OpenJDK 17 or 21 and put its java on PATH, or set JAVA_HOME to its folder"


def _advice() -> str:
    """Return the installation hint for this system."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    line = install_line(platform.system(), release)
    return line if line.startswith("install ") else f"install it with: {line}"


def _java_path(variables: Mapping[str, str]) -> Path | None:
    """Return the ``java`` of JAVA_HOME, otherwise of PATH."""
    home = variables.get("JAVA_HOME")
    if home:
        return Path(home) / "bin" / "java"
    found = shutil.which("java", path=variables.get("PATH"))
    return Path(found) if found else None
