"""API keys: creation, and the file that holds their hashes.

A key is `coincide_ID_SECRET`. The secret has 256 random bits, so its SHA-256 cannot be inverted by
guessing, and a slow hash is not needed. The file holds the hashes only; the id finds the entry.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import tempfile
from contextlib import contextmanager
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from correlation.errors import InvalidFieldError
from correlation.resources.checks import NAME, check_name
from service.access.callers import Caller, Role
from service.errors import AccessSettingsError
from service.settings import ROLE_NAMES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

_BEGINNING = "coincide_"
_ID_BYTES, _SECRET_BYTES = 8, 32
# Longer credentials are not keys.
_MAX_CHARACTERS = 100
_OTHERS, _GROUP_READS = 0o077, 0o040
_ROOT = 0
_SETTING = "COINCIDE_KEYS_FILE"


class Key(BaseModel):
    """An API key as the file holds it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(description="Name of the key, shown in logs and in the audit topic.")
    id: Annotated[str, Field(pattern="^[0-9a-f]{16}$")] = Field(description="Public part.")
    role: Literal["viewer", "editor", "admin"] = Field(description="Role of the caller.")
    names: list[str] = Field(
        default_factory=list, description="Prefixes of the names that an editor may write."
    )
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = Field(
        description="SHA-256 of the whole key."
    )
    created_at: int = Field(description="Time of creation, in µs since 1970.")
    expires_at: int | None = Field(
        default=None, description="Time from which the key is not valid, in µs; null: never."
    )

    @field_validator("name")
    @classmethod
    def _name_is_valid(cls, value: str) -> str:
        if NAME.fullmatch(value) is None:
            raise ValueError("is not a valid name")
        return value

    @field_validator("names")
    @classmethod
    def _prefixes_are_valid(cls, value: list[str]) -> list[str]:
        # An empty prefix would give the right to all names.
        if any(NAME.fullmatch(prefix) is None for prefix in value):
            raise ValueError("has the beginning of a name that is not valid")
        return value

    def caller(self) -> Caller:
        """Return the caller that sends this key."""
        return Caller(
            self.name,
            Role[self.role.upper()],
            tuple(self.names),
            "key",
            key_id=self.id,
            expires_at_us=self.expires_at,
        )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    v: Literal[1]
    keys: list[Key]


def new_key(
    name: str,
    role: str,
    names: Sequence[str],
    now_us: int,
    expires_at_us: int | None = None,
) -> tuple[Key, str]:
    """Make a key.

    Parameters
    ----------
    name : str
        Name of the key.
    role : str
        viewer, editor or admin.
    names : sequence of str
        Prefixes of the names that an editor may write; empty: all names.
    now_us, expires_at_us : int
        Time of creation and of expiry, in µs since 1970; None: the key does not expire.

    Returns
    -------
    Key, str
        The entry of the file, and the text of the key, which is stored nowhere.

    Raises
    ------
    InvalidFieldError
        When a value is not valid.
    """
    check_name(name)
    if role not in ROLE_NAMES:
        raise InvalidFieldError(
            "role", f"{role[:40]!r} is unknown", f"use one of: {', '.join(ROLE_NAMES)}"
        )
    if names and role != Role.EDITOR.label:
        raise InvalidFieldError(
            "names", f"the role {role} has no rights to names", "use the role editor"
        )
    for prefix in names:
        check_name(prefix, "names")
    if expires_at_us is not None and expires_at_us <= now_us:
        raise InvalidFieldError("expires", "must be in the future", "use a later time")
    found_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    text = f"{_BEGINNING}{found_id}_{secret}"
    entry = {
        "name": name,
        "id": found_id,
        "role": role,
        "names": list(names),
        "sha256": _hash_of(text),
        "created_at": now_us,
        "expires_at": expires_at_us,
    }
    return Key.model_validate(entry), text


def is_key(credentials: str) -> bool:
    """Return whether credentials have the form of an API key."""
    return credentials.startswith(_BEGINNING) and len(credentials) <= _MAX_CHARACTERS


def find_key(keys: Sequence[Key], text: str, now_us: int) -> Key | None:
    """Return the key of these credentials; None: it does not exist or has expired.

    Hashes are compared in constant time.
    """
    found_id = text.removeprefix(_BEGINNING).partition("_")[0]
    hashed = _hash_of(text)
    for key in keys:
        if key.id == found_id and compare_digest(key.sha256, hashed):
            return None if key.expires_at is not None and key.expires_at <= now_us else key
    return None


def read_keys(path: Path) -> tuple[Key, ...]:
    """Read the file of keys.

    Raises
    ------
    AccessSettingsError
        When the file cannot be read, is not valid, or other users have rights to it, except as
        `is_mounted_secret` allows.
    """
    try:
        # The rights are those of the file that is read, even if it is replaced meanwhile.
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            content = file.read()
    except FileNotFoundError:
        raise AccessSettingsError(
            f"{_SETTING}: {path} does not exist; make a key: coincide keys create NAME --role admin"
        ) from None
    except OSError as error:
        raise AccessSettingsError(
            f"{_SETTING}: {path} cannot be read ({error.strerror}); correct its rights"
        ) from None
    groups = {os.getegid(), *os.getgroups()}
    if status.st_mode & _OTHERS and not is_mounted_secret(status, os.geteuid(), groups):
        raise AccessSettingsError(
            f"{_SETTING}: other users have rights to {path} (mode {status.st_mode & 0o777:04o}); "
            f"withdraw them: chmod 600 {path}"
        )
    try:
        found = _File.model_validate_json(content)
    except ValidationError as error:
        place = ".".join(str(it) for it in error.errors(include_input=False)[0]["loc"])
        raise AccessSettingsError(
            f"{_SETTING}: {path} is not a valid file of keys{f', at {place}' if place else ''}; "
            "restore it, or make the keys again with coincide keys create"
        ) from None
    names = [it.name for it in found.keys]
    repeated = next((it for it in names if names.count(it) > 1), None)
    if repeated is not None:
        raise AccessSettingsError(
            f"{_SETTING}: {path} has two keys with the name {repeated}; remove one of them"
        )
    return tuple(found.keys)


def is_mounted_secret(status: os.stat_result, user: int, groups: Collection[int]) -> bool:
    """Return whether a file is readable as Kubernetes mounts a secret: by root and one group.

    The kubelet owns the files of a secret, and grants the group of the pod (`fsGroup`) the right to
    read them. The process cannot narrow these rights: only root and this group have any.

    Parameters
    ----------
    status : os.stat_result
        Status of the file.
    user : int
        Effective user of the process. A file of its own must be private.
    groups : collection of int
        Groups of the process.
    """
    has_more = status.st_mode & _OTHERS & ~_GROUP_READS
    return status.st_uid == _ROOT != user and status.st_gid in groups and not has_more


@contextmanager
def changing_keys(path: Path) -> Iterator[None]:
    """Exclude other processes that change the file of keys, from its read until its write.

    Raises
    ------
    OSError
        When the lock beside the file cannot be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # The file itself is replaced: a lock on it would end with the first change.
    lock = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def write_keys(path: Path, keys: Sequence[Key]) -> None:
    """Replace the file of keys; readers see the old or the new content, never a part.

    The new file has the owner of the old one: the service can read it also after a change by root.

    Raises
    ------
    OSError
        When the file cannot be written, or its owner cannot be kept.
    """
    content = _File(v=1, keys=list(keys)).model_dump_json(indent=2) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    # mkstemp creates the file with mode 0600.
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            if path.exists():
                owner = path.stat()
                os.fchown(descriptor, owner.st_uid, owner.st_gid)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _hash_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()
