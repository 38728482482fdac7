"""Check the environment of Coincide (``doctor``)."""

from __future__ import annotations

import platform
import re
import socket
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from rich.markup import escape
from rich.table import Table

from cli.client.rest import ServiceClient
from cli.errors import CliError
from cli.stack.broker import HOST, answers
from cli.stack.jars import home_of, present, verified_jars
from cli.stack.java import find_java
from correlation.printable import printable
from kafka_client.connection import explain_silence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from cli.settings import Settings

_PACKAGE = "coincide"
_ASK_SECONDS = 3
_BROKER_PORT = 9092
# "name<3,>=2.16", followed by "; extra == ..." for the requirement of an extra.
_REQUIREMENT = re.compile(r"([\w.-]+)([^;]*)(;.*)?")
_BOUND = re.compile(r"(>=|<|==)([\d.]+)")


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check.

    Parameters
    ----------
    name
        Name of the check.
    ok
        Whether the check passed.
    essential
        Whether a failure is an error; a broker that does not run yet is not an error.
    found
        The finding, or the remedy.
    """

    name: str
    ok: bool
    essential: bool
    found: str

    def to_document(self) -> dict[str, Any]:
        """Return the check as a JSON object."""
        return asdict(self)


def examine(settings: Settings) -> list[Check]:
    """Run all checks; nothing is started or changed.

    Parameters
    ----------
    settings
        Addresses of broker and service, and folder of archives.
    """
    return [
        _python(),
        _java(),
        *_packages(),
        _jars(settings),
        *_addresses(settings),
    ]


def show(checks: list[Check], console: Console) -> None:
    """Print the checks as a table."""
    table = Table(box=None, pad_edge=False)
    for column in ("", "what", "found"):
        table.add_column(column)
    for check in checks:
        sign = "[green]✓[/]" if check.ok else ("[red]✗[/]" if check.essential else "[yellow]-[/]")
        # The error of another server at the address may be in it.
        table.add_row(sign, check.name, escape(printable(check.found)))
    console.print(table)


def _python() -> Check:
    version = platform.python_version()
    bounds = metadata.metadata(_PACKAGE)["Requires-Python"]
    fits = _fits(version, bounds)
    required = "" if fits else f", but {bounds} is required"
    return Check("Python", fits, essential=True, found=f"{version}{required} ({sys.executable})")


def _java() -> Check:
    try:
        java = find_java()
    except CliError as error:
        return Check("Java", ok=False, essential=True, found=str(error))
    return Check("Java", ok=True, essential=True, found=f"{java.major} ({java.path})")


def _packages() -> Iterator[Check]:
    """Compare the installed packages with the requirements of this version."""
    for line in metadata.requires(_PACKAGE) or ():
        requirement = _REQUIREMENT.match(line)
        if requirement is None or requirement.group(3):
            continue
        name, bounds, _ = requirement.groups()
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Check(name, ok=False, essential=True, found="is not installed")
            continue
        fits = _fits(version, bounds)
        found = version if fits else f"{version}, but {bounds.strip()} is required"
        yield Check(name, fits, essential=True, found=found)


def _fits(version: str, bounds: str) -> bool:
    """Return whether a version is within the bounds of a requirement."""
    have = _numbers(version)
    for sign, bound in _BOUND.findall(bounds):
        need = _numbers(bound)
        if (sign == ">=" and have < need) or (sign == "<" and have >= need):
            return False
        if sign == "==" and have != need:
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, without trailing zeros."""
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _jars(settings: Settings) -> Check:
    folder = settings.jars.absolute()
    title = "Java archives of the broker"
    if not present(folder, "broker"):
        found = f"not in {folder} (COINCIDE_JARS); run: coincide jars"
        return Check(title, ok=False, essential=False, found=found)
    try:
        verified_jars(folder, "broker")
    except CliError as error:
        return Check(title, ok=False, essential=True, found=str(error))
    return Check(title, ok=True, essential=False, found=str(home_of(folder, "broker")))


def _addresses(settings: Settings) -> Iterator[Check]:
    """Check whether broker and service answer; if not, whether ``up`` could use their ports."""
    if answers(settings.bootstrap, _ASK_SECONDS, settings.client):
        yield Check("broker", ok=True, essential=False, found=f"answers at {settings.bootstrap}")
    else:
        cause = explain_silence(settings.client)
        found = f"nothing answers at {settings.bootstrap}{f': {cause}' if cause else ''}"
        if settings.bootstrap == f"{HOST}:{_BROKER_PORT}":
            found += f"; {_port_state(_BROKER_PORT)}"
        found += "; use another address with --bootstrap or COINCIDE_BOOTSTRAP"
        yield Check("broker", ok=False, essential=False, found=found)
    with ServiceClient.of(settings, _ASK_SECONDS) as client:
        if client.ready():
            yield Check("service", ok=True, essential=False, found=f"ready at {client.url}")
            return
    found = f"not ready at {client.url}"
    url = urlsplit(settings.url)
    # Whether `coincide up` could use the port is checked on this machine only.
    if url.hostname in {HOST, "localhost"} and url.port:
        found += f"; {_port_state(url.port)}"
    found += "; use another address with --url or COINCIDE_URL"
    yield Check("service", ok=False, essential=False, found=found)


def _port_state(port: int) -> str:
    """Return whether the port is in use, as a sentence."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return f"port {port} is used by another program"
    return f"port {port} is free for `coincide up`"
