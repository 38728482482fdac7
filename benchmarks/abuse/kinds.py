"""The kinds of abuse: each sends one round of it, and counts the answers by status.

All of them come from other addresses than the honest client. `FORBIDDEN` are outcomes that no abuse
may have.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import jwt

from tests.support.kafka import Sent, produce
from tests.support.raw_http import DROPPED, RawClient, request
from tests.support.results import headers_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from tests.support.issuer import Issuer

# A first digit of 5 other than 503, which is the answer to overload.
FORBIDDEN = frozenset({"500", "501", "502", "504"})
_SLOW_CLIENTS = 50
_READERS = 1000
_SCRIPT = "<script>alert(1)</script>"
_JSON = "Content-Type: application/json"
_STREAM = {"topic": "t", "max_uncertainty": "1s", "max_delay": "1s"}


class Target(NamedTuple):
    """The service under abuse.

    Attributes
    ----------
    port
        Its port on this machine.
    key
        API key of a viewer, which the abusers have.
    bootstrap, config_topic, alarm_topic
        Kafka, and topics of the service.
    issuer
        Issuer of the tokens that the service accepts.
    forger
        Another issuer, whose keys have the ids of those of the issuer.
    """

    port: int
    key: str
    bootstrap: str
    config_topic: str
    alarm_topic: str
    issuer: Issuer
    forger: Issuer


class Round:
    """One round of a kind, from an address.

    Parameters
    ----------
    target
        The service.
    number
        Number of the kind, of which the address is made.
    """

    def __init__(self, target: Target, number: int) -> None:
        self.target = target
        self.client = RawClient(target.port, f"127.0.1.{number + 1}")
        self.found: Counter[str] = Counter()

    @property
    def rights(self) -> str:
        """Header with the key of the viewer."""
        return f"Authorization: Bearer {self.target.key}"

    async def ask(self, sent: bytes) -> None:
        """Send a request on a connection of its own, and count its outcome."""
        status, _ = await self.client.open(sent)
        self.found[status] += 1

    async def ask_all(self, every: Iterable[bytes]) -> None:
        """Send requests at once."""
        await asyncio.gather(*map(self.ask, every))

    def put(self, name: str, document: object) -> bytes:
        """Return a request that would write a stream, without the right to do so."""
        path = f"/v1/streams/{quote(name, safe='')}"
        return request("PUT", path, [self.rights, _JSON], json.dumps(document).encode())


async def huge_bodies(it: Round) -> None:
    """Send bodies that are large, or deep, with and without a length."""
    head = [it.rights, _JSON]
    chunked = request("PUT", "/v1/config", [*head, "Transfer-Encoding: chunked"])
    bodies = [b"x" * 2_000_000, b"[" * 500_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000]
    await it.ask_all(
        [
            *(request("PUT", "/v1/config?dry_run=true", head, body) for body in bodies),
            chunked + b"100000\r\n" + b"x" * 0x100000 + b"\r\n100000\r\n" + b"x" * 0x100000,
        ]
    )


async def slow_clients(it: Round) -> None:
    """Begin headers and bodies, and never complete them."""
    begun = request("PUT", "/v1/config", [it.rights, _JSON, "Content-Length: 1000"])
    halves = (b"", b"G", b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", begun + b"{")
    await it.ask_all(halves[place % len(halves)] for place in range(_SLOW_CLIENTS))


async def many_readers(it: Round) -> None:
    """Open live feeds, far more than the limit, and read nothing more."""
    listen = request("GET", "/v1/alarms", [it.rights, "Accept: text/event-stream"])
    await it.ask_all([listen] * _READERS)


async def header_tricks(it: Round) -> None:
    """Send headers that proxies, frameworks or parsers could misunderstand."""
    tricks = (
        "Host: evil.example.com",
        "Origin: https://evil.example.com",
        "X-HTTP-Method-Override: DELETE",
        "X-Forwarded-For: 127.0.0.1",
        "X-Original-URL: /v1/config",
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: -1",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "X-Large: " + "x" * 200_000,
        "Host : localhost",
        "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings",
    )
    # With credentials: otherwise those that a parser accepts would be refused for the lack of them.
    await it.ask_all(request("GET", "/v1/streams", [it.rights, trick]) for trick in tricks)


async def path_tricks(it: Round) -> None:
    """Ask for paths outside of the routes."""
    tricks = (
        "/v1/streams/..%2f..%2fetc%2fpasswd",
        "/v1/streams/../../etc/passwd",
        "/console/../../../../etc/passwd",
        "/console/..%2f..%2fetc%2fpasswd",
        "/v1//streams",
        "/v1/streams/x%00",
        "/v1/streams/x%0d%0aSet-Cookie:%20a=b",
        "/v1/streams/%ff%fe",
        "//evil.example.com/v1/streams",
        "/" + "a" * 20_000,
    )
    await it.ask_all(request("GET", trick, [it.rights]) for trick in tricks)


async def forged_tokens(it: Round) -> None:
    """Send tokens without a signature, with wrong ones, and signed ones with wrong claims.

    They name a key of the issuer, or one that it does not have, for which the service asks it.
    """

    def part(document: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()

    issuer, forger = it.target.issuer, it.target.forger
    admin: dict[str, Any] = {"sub": "eve", "roles": ["admin"]}
    claims = part(issuer.claims(**admin))
    (real,), unknown = issuer.keys, secrets.token_hex(4)
    own = forger.keys[real]
    tokens = [
        f"{part({'alg': 'none', 'kid': real})}.{claims}.",
        f"{part({'alg': 'HS256', 'kid': real})}.{claims}.{secrets.token_urlsafe(32)}",
        f"{part({'alg': 'RS256', 'kid': real})}.{claims}.{'A' * 342}",
        *(
            jwt.encode(issuer.claims(**admin), own, algorithm="RS256", headers=headers)
            for headers in ({"kid": real}, {"kid": unknown}, None)
        ),
        issuer.token(**admin, aud="other"),
        issuer.token(**admin, iss="https://evil.example.com"),
        issuer.token(**admin, exp=1_000_000_000),
        issuer.token(sub="eve", roles=["emperor"]),
        "a.b.c",
        "x" * 50_000,
    ]
    await it.ask_all(
        request("GET", "/v1/config", [f"Authorization: Bearer {token}"]) for token in tokens
    )


async def guessed_keys(it: Round) -> None:
    """Guess keys, in both headers."""
    guesses = [f"coincide_{secrets.token_urlsafe(32)}" for _ in range(30)]
    await it.ask_all(
        [
            *(request("GET", "/v1/config", [f"Authorization: Bearer {key}"]) for key in guesses),
            *(request("GET", "/v1/config", [f"X-API-Key: {key}"]) for key in guesses),
            request("GET", "/v1/config", [it.rights, f"X-API-Key: {guesses[0]}"]),
        ]
    )


async def scripts_in_ids(it: Round) -> None:
    """Write alarms whose ids and attributes are HTML, and read them as a browser would."""
    event = {"id": _SCRIPT, "stream": _SCRIPT, "key": _SCRIPT, "attributes": {"x": _SCRIPT}}
    alarm = {"condition": "c", "alarm_id": _SCRIPT, "a": event, "b": event, "detected_at": 0}
    record = Sent(json.dumps(alarm).encode(), _SCRIPT.encode(), headers=headers_of("c"))
    await asyncio.to_thread(produce, it.target.bootstrap, it.target.alarm_topic, [record])
    sent = request("GET", "/v1/alarms?limit=1", [it.rights, "Accept: text/html,*/*;q=0.1"])
    status, answer = await it.client.open(sent)
    if answer is not None:
        head = (await answer.readuntil(b"\r\n\r\n")).lower()
        for wanted in (b"content-type: application/json", b"x-content-type-options: nosniff"):
            # An answer 429 is a problem document.
            if status == "200" and wanted not in head:
                status = "missing header"
    it.found[status] += 1
    await it.ask(it.put(_SCRIPT, _STREAM))


async def formulas(it: Round) -> None:
    """Send names that a spreadsheet would evaluate."""
    names = ('=cmd|"/c calc"!A1', "@SUM(1+1)", "+1", "-1+1", "=HYPERLINK(1)")
    await it.ask_all(it.put(name, _STREAM | {"topic": name}) for name in names)


async def forged_lines(it: Round) -> None:
    """Send names, and keys of config records, that would forge lines of the log."""
    line = "x\n2026-01-01 00:00:00,000 INFO service.access: ada signed in\x1b[31m"
    records = [Sent(b"{}", f"stream/{line}".encode()), Sent(None, f"stream/{line}".encode())]
    await asyncio.to_thread(produce, it.target.bootstrap, it.target.config_topic, records)
    await it.ask_all(
        [
            it.put(line, _STREAM),
            it.put("x", _STREAM | {"topic": line}),
            request("GET", f"/v1/alarms?after={quote(line)}", [it.rights]),
        ]
    )


KINDS: dict[str, Callable[[Round], Awaitable[None]]] = {
    "huge bodies": huge_bodies,
    "slow clients": slow_clients,
    "thousands of live feeds": many_readers,
    "tricks with headers": header_tricks,
    "tricks with paths": path_tricks,
    "forged tokens": forged_tokens,
    "guessed keys": guessed_keys,
    "scripts in ids and attributes": scripts_in_ids,
    "formulas in names": formulas,
    "forged lines of logs": forged_lines,
}


async def run_round(target: Target, number: int, kind: str) -> Counter[str]:
    """Run one round of a kind; return the outcomes of its requests."""
    it = Round(target, number)
    try:
        await KINDS[kind](it)
    finally:
        it.client.close()
    return it.found


def describe(outcomes: Counter[str]) -> str:
    """Return outcomes in words: statuses in their order, dropped connections last."""
    ordered = sorted(outcomes, key=lambda it: (it == DROPPED, it))
    return ", ".join(f"{outcomes[it]:,} × {it}" for it in ordered)
