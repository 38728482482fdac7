"""Names of hosts: loopback, URLs of keys, and Host headers."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from service.hosts import host_of, is_allowed, is_loopback, is_private_url
from service.settings import Settings


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("::1", True),
        ("[::1]", True),
        ("0.0.0.0", False),  # noqa: S104 - recognised, not bound
        ("::", False),
        ("192.0.2.1", False),
        ("localhost.example.com", False),
        ("", False),
    ],
)
def test_loopback_is_recognised(host: str, *, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("url", "private"),
    [
        ("https://login.example.com/realms/main", True),
        ("http://127.0.0.1:8080/", True),
        ("http://localhost/", True),
        ("http://[::1]:80/", True),
        ("http://login.example.com/", False),
        ("http://127.0.0.1.example.com/", False),
        ("http://127.0.0.1@example.com/", False),
        ("file:///etc/passwd", False),
        ("ftp://127.0.0.1/", False),
        ("https://", False),
        ("http://[::1", False),
        ("login.example.com", False),
    ],
)
def test_keys_come_by_https_or_from_this_machine(url: str, *, private: bool) -> None:
    assert is_private_url(url) is private
    if not private:
        with pytest.raises(ValidationError, match="must be a URL of https://"):
            Settings(oidc_issuer=url)


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("localhost", "localhost"),
        ("LocalHost:8080", "localhost"),
        ("[::1]:8080", "::1"),
        ("127.0.0.1:65535", "127.0.0.1"),
        ("127.0.0.1:99999", ""),
        ("127.0.0.1:x", ""),
        ("127.0.0.1/path", ""),
        ("127.0.0.1?x", ""),
        ("127.0.0.1#x", ""),
        ("user@127.0.0.1", ""),
        ("", ""),
    ],
)
def test_host_of_a_header(authority: str, host: str) -> None:
    assert host_of(authority) == host


@pytest.mark.parametrize(
    ("authority", "allowed", "accepted"),
    [
        ("localhost:8080", [], True),
        ("[::1]:8080", [], True),
        ("evil.example.com", [], False),
        ("localhost.evil.example.com", [], False),
        ("coincide.lan:8080", ["coincide.lan"], True),
        ("COINCIDE.LAN", ["coincide.lan"], True),
        ("other.lan", ["coincide.lan"], False),
        ("", ["coincide.lan", ""], False),
        ("[2001:db8::1]:80", ["2001:db8::1"], True),
        ("evil.example.com", ["*"], True),
    ],
)
def test_foreign_host_is_refused(authority: str, allowed: list[str], *, accepted: bool) -> None:
    assert is_allowed(authority, allowed) is accepted


@pytest.mark.parametrize("name", ["http://coincide.lan", "a b/", "coincide.lan:99999", ""])
def test_setting_with_a_wrong_host_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="is not a host"):
        Settings(allowed_hosts=(name,))


def test_allowed_address_of_ipv6_needs_no_brackets() -> None:
    # The address of a pod, as Kubernetes writes it.
    for written in ("2001:db8::1", "2001:DB8:0::1", "[2001:db8::1]:8080"):
        allowed = Settings(allowed_hosts=(written,)).allowed_hosts
        assert is_allowed("[2001:db8::1]:8080", allowed)
        assert not is_allowed("[2001:db8::2]:8080", allowed)


def test_ports_of_allowed_hosts_do_not_matter() -> None:
    assert Settings(allowed_hosts=("Coincide.lan:8080", "*")).allowed_hosts == ("coincide.lan", "*")
