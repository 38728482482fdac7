"""Names of hosts: which are those of this machine, and which a request may name."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
ANY_HOST = "*"


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is reached from this machine only."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_private_url(url: str) -> bool:
    """Return whether the network cannot read or change a response from a URL.

    True for https, and for http of this machine.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return False
    return bool(host) and (
        parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    )


def host_of(authority: str) -> str:
    """Return the host of a Host header, in lower case, without port and brackets.

    Empty if the header is not valid.
    """
    try:
        parts = urlsplit(f"//{authority}")
        # Access to `port` validates it.
        is_valid = parts.port != 0 and parts.username is None and parts.netloc == authority
    except ValueError:
        return ""
    return (parts.hostname or "") if is_valid else ""


def allowed_host(name: str) -> str:
    """Return the host of a setting in lower case; an address of IPv6 needs no brackets.

    Empty if it is not valid.
    """
    try:
        return str(ip_address(name))
    except ValueError:
        return host_of(name)


def is_allowed(authority: str, allowed: Collection[str]) -> bool:
    """Return whether a Host header names this machine or an allowed host.

    Parameters
    ----------
    authority : str
        Value of the header.
    allowed : collection of str
        Further names in lower case; `*` allows any host.
    """
    if ANY_HOST in allowed:
        return True
    host = host_of(authority)
    return bool(host) and (host in LOOPBACK_NAMES or host in allowed)
