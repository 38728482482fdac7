"""Callers of the API, their roles and rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal

from service.errors import ForbiddenError


class Role(IntEnum):
    """Role of a caller; each role has the rights of the lower ones."""

    VIEWER = 1
    EDITOR = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """Name in settings, files and messages."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Caller:
    """Sender of a request.

    Parameters
    ----------
    name : str
        Name of the API key, or the subject of the token.
    role : Role
        Role of the caller.
    names : tuple of str
        Prefixes of the names of the resources that an editor may write; empty: all names.
    method : {"key", "token", "none"}
        How the caller proved its identity; none: access control is off.
    address : str or None
        Address of its connection.
    key_id : str or None
        Public part of its key.
    expires_at_us : int or None
        Time from which its credentials are not valid, in µs since 1970; None: never.
    """

    name: str
    role: Role
    names: tuple[str, ...] = ()
    method: Literal["key", "token", "none"] = "none"
    address: str | None = None
    key_id: str | None = field(default=None, compare=False)
    expires_at_us: int | None = field(default=None, compare=False)

    def require_role(self, needed: Role) -> None:
        """Check the role of the caller.

        Raises
        ------
        ForbiddenError
            When another role is needed.
        """
        if self.role < needed:
            raise ForbiddenError(
                f"the role {needed.label} is needed; {self.name} has the role {self.role.label}"
            )

    def may_write(self, name: str) -> bool:
        """Return whether the caller may write resources of a name."""
        if self.role == Role.EDITOR:
            return not self.names or name.startswith(self.names)
        return self.role == Role.ADMIN

    def require_name(self, kind: str, name: str) -> None:
        """Check the right to write a resource.

        Raises
        ------
        ForbiddenError
            When the caller may not write it.
        """
        self.require_role(Role.EDITOR)
        if not self.may_write(name):
            raise ForbiddenError(
                f"the role admin, or a right to names such as {name!r}, is needed to write "
                f"{kind} {name!r}; {self.name} may write names that begin with: "
                f"{', '.join(self.names)}"
            )


# Caller of every request while access control is off.
EVERYONE = Caller("everyone", Role.ADMIN)
# Caller of the paths that need no credentials.
STRANGER = Caller("stranger", Role.VIEWER)
