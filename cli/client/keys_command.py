"""The commands ``coincide keys``: API keys of the service."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from cli.client.lines import write_json_line
from cli.errors import UsageError
from cli.flags import FlagsCommand, FlagsGroup
from cli.settings import read_settings
from correlation.errors import InvalidFieldError

if TYPE_CHECKING:
    from service.access.keys import Key

keys_app = typer.Typer(
    cls=FlagsGroup,
    help="API keys of the service, in a file that holds their hashes.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
)
File = Annotated[
    Path | None, typer.Option("--file", help="File of the keys; default: COINCIDE_KEYS_FILE.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON.")]


@keys_app.command(cls=FlagsCommand)
def create(
    name: Annotated[str, typer.Argument(help="Name of the key, shown in logs and audit records.")],
    *,
    role: Annotated[str, typer.Option(help="viewer, editor or admin.")],
    names: Annotated[
        list[str] | None,
        typer.Option(
            help="Beginning of the names that an editor may write; default: all. Repeatable."
        ),
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option(help='Duration such as "90d", or a time in RFC 3339; default: never.'),
    ] = None,
    file: File = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it; it is stored nowhere and cannot be printed again.

    A running service accepts it at once.
    """
    # Imported here: slow to import, and --help does not need it.
    from service.access.keys import changing_keys, new_key, write_keys  # noqa: PLC0415

    path, now_us = _path(file), time.time_ns() // 1000
    try:
        expires_at_us = None if expires is None else _expiry_us(expires, now_us)
        key, text = new_key(name, role, names or (), now_us, expires_at_us)
    except InvalidFieldError as error:
        option = "NAME" if error.field == "name" else f"--{error.field}"
        raise UsageError(f"{option}: {error.problem}; {error.remedy}") from error
    with changing_keys(path):
        present = _read(path)
        if any(it.name == name for it in present):
            raise UsageError(
                f"NAME: {path} has a key {name!r}; use another name, or revoke it: "
                f"coincide keys revoke {name}"
            )
        write_keys(path, [*present, key])
    if as_json:
        write_json_line({**_shown(key), "key": text})
    else:
        typer.echo(text)
        Console(stderr=True, highlight=False, soft_wrap=True).print(
            f"key {name} ({role}) was added to {path}; keep the line above: it is not stored",
            markup=False,
        )


@keys_app.command("list", cls=FlagsCommand)
def list_keys(*, file: File = None, as_json: AsJson = False) -> None:
    """List the keys, without their secrets."""
    present = _read(_path(file))
    if as_json:
        write_json_line([_shown(it) for it in present])
        return
    table = Table("name", "role", "names", "created", "expires", box=None)
    for it in present:
        expires = "never" if it.expires_at is None else _time(it.expires_at)
        table.add_row(it.name, it.role, " ".join(it.names), _time(it.created_at), expires)
    Console(highlight=False).print(table)


@keys_app.command(cls=FlagsCommand)
def revoke(
    name: Annotated[str, typer.Argument(help="Name of the key.")], *, file: File = None
) -> None:
    """Remove a key; a running service refuses it from its next request on."""
    # Imported here: slow to import, and --help does not need it.
    from service.access.keys import changing_keys, write_keys  # noqa: PLC0415

    path = _path(file)
    with changing_keys(path):
        present = _read(path)
        kept = [it for it in present if it.name != name]
        if len(kept) == len(present):
            known = ", ".join(it.name for it in present) or "none"
            raise UsageError(f"NAME: {path} has no key {name!r}; its keys: {known}")
        write_keys(path, kept)
    typer.echo(f"key {name} was revoked")


def _path(file: Path | None) -> Path:
    found = file or read_settings().keys_file
    if found is None:
        raise UsageError("--file: is missing; name the file of the keys, or set COINCIDE_KEYS_FILE")
    return found


def _read(path: Path) -> tuple[Key, ...]:
    """Return the keys of the file; none if it does not exist yet."""
    # Imported here: slow to import, and --help does not need it.
    from service.access.keys import read_keys  # noqa: PLC0415
    from service.errors import AccessSettingsError  # noqa: PLC0415

    if not path.exists():
        return ()
    try:
        return read_keys(path)
    except AccessSettingsError as error:
        raise UsageError(error.detail) from error


def _expiry_us(text: str, now_us: int) -> int:
    """Read a duration from now, or a time.

    Raises
    ------
    InvalidFieldError
        The string is neither.
    """
    # Imported here: slow to import, and --help does not need it.
    from correlation.resources.durations import parse_duration_us  # noqa: PLC0415
    from service.documents.given_records import read_moment_us  # noqa: PLC0415

    try:
        return now_us + parse_duration_us(text, "expires")
    except InvalidFieldError:
        return read_moment_us("expires", text)


def _shown(key: Key) -> dict[str, object]:
    return key.model_dump(exclude={"sha256"})


def _time(moment_us: int) -> str:
    return datetime.fromtimestamp(moment_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%MZ")
