"""Abuse a service for some time: `python -m benchmarks.abuse --seconds 3600`.

A service with access control by keys and tokens, as a process of its own on an embedded broker, is
sent ten kinds of abuse at once, round after round, while an honest client reads and writes. The run
fails if a request of the honest client fails, if an answer to abuse is an internal error, if the
log contains a forged line, if the issuer of the tokens is asked for its keys more often than twice
a minute, or if the service needs more than `MAX_GROWTH_BYTES` more memory than after the first
rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import httpx

from benchmarks.abuse.kinds import FORBIDDEN, KINDS, Target, describe, run_round
from benchmarks.report import Report
from cli.stack.broker import EmbeddedBroker
from correlation.resources.topics import Topics
from service.access.keys import new_key, write_keys
from service.access.signing_keys import MIN_INTERVAL_SECONDS
from tests.support.command import service_process
from tests.support.issuer import AUDIENCE, Issuer, running_issuer
from tests.support.patience import PATIENCE_SECONDS
from tests.support.raw_http import memory_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cli.stack.processes import ChildProcess

PREFIX = "abuse"
MAX_GROWTH_BYTES = 100 * 2**20
# Short, so that rounds of slow clients end soon.
_REQUEST_SECONDS = "5"
_HONEST_PAUSE_SECONDS = 0.1
_MIB = 2**20
# First lines of records, and the lines of their tracebacks.
_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ [\w.]+: .*|    .*|coincide: .*")
_FORGED = re.compile(r"^\S+ \S+ INFO service\.access: ada signed in", re.MULTILINE)


class Abused(NamedTuple):
    """Result of a run.

    Attributes
    ----------
    outcomes
        Outcomes of requests by kind of abuse.
    rounds
        Rounds by kind.
    honest
        Times until the answers to the honest client, in seconds.
    failures
        What failed, in sentences.
    memory
        Memory of the service before the first round, after the first round of each kind, and at the
        end, in bytes.
    seconds
        Length of the run.
    asked
        Number of requests of the service to the issuer of tokens.
    """

    outcomes: dict[str, Counter[str]]
    rounds: Counter[str]
    honest: list[float]
    failures: list[str]
    memory: tuple[int, int, int]
    seconds: float
    asked: int


class Abuse:
    """A run against one service.

    Parameters
    ----------
    target
        The service, with the key of a viewer.
    client
        The honest client, with the key of an editor.
    pid
        Process of the service.
    """

    def __init__(self, target: Target, client: httpx.AsyncClient, pid: int) -> None:
        self._target = target
        self._client = client
        self._pid = pid
        self._outcomes: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
        self._rounds: Counter[str] = Counter()
        self._failures: list[str] = []
        self._honest: list[float] = []
        # Whether each kind has ended a round.
        self._every_kind = asyncio.Event()

    async def run(self, seconds: float) -> Abused:
        """Run all kinds and the honest client at once."""
        begin = time.monotonic()
        memory = [memory_of(self._pid)]
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._be_honest(stop))
            for number, kind in enumerate(KINDS):
                group.create_task(self._repeat(number, kind, stop))
            await self._every_kind.wait()
            memory.append(memory_of(self._pid))
            await asyncio.sleep(max(0.0, seconds - (time.monotonic() - begin)))
            stop.set()
        memory.append(memory_of(self._pid))
        return Abused(
            self._outcomes,
            self._rounds,
            self._honest,
            self._failures,
            (memory[0], memory[1], memory[2]),
            time.monotonic() - begin,
            len(self._target.issuer.requests),
        )

    async def _repeat(self, number: int, kind: str, stop: asyncio.Event) -> None:
        while not stop.is_set():
            found = await run_round(self._target, number, kind)
            self._outcomes[kind] += found
            self._rounds[kind] += 1
            if len(self._rounds) == len(KINDS):
                self._every_kind.set()
            wrong = {it for it in found if it in FORBIDDEN or it == "missing header"}
            self._failures += [f"{kind}: {it}" for it in sorted(wrong)]

    async def _be_honest(self, stop: asyncio.Event) -> None:
        """Read and write until the run ends; each answer must be the right one."""
        number = 0
        while not stop.is_set():
            number += 1
            document = {"topic": "honest", "max_uncertainty": f"{number}ms", "max_delay": "1s"}
            await self._expect("PUT", "/v1/streams/honest", (200, 201), document)
            await self._expect("GET", "/v1/streams/honest", (200,))
            await self._expect("GET", "/v1/alarms?limit=1", (200,))
            await self._expect("GET", "/livez", (200,))
            token = self._target.issuer.token()
            await self._expect("GET", "/v1/streams/honest", (200,), token=token)
            await asyncio.sleep(_HONEST_PAUSE_SECONDS)

    async def _expect(
        self,
        method: str,
        path: str,
        wanted: tuple[int, ...],
        document: object = None,
        token: str | None = None,
    ) -> None:
        headers = None if token is None else {"Authorization": f"Bearer {token}"}
        begin = time.monotonic()
        try:
            answer = await self._client.request(method, path, json=document, headers=headers)
        except httpx.HTTPError as error:
            self._failures.append(f"honest client: {method} {path}: {error!r}")
            return
        finally:
            self._honest.append(time.monotonic() - begin)
        if answer.status_code not in wanted:
            self._failures.append(f"honest client: {method} {path}: {answer.status_code}")


def forged_lines(log: Path) -> Iterator[str]:
    """Yield the lines of a log that the service cannot have written."""
    text = log.read_text(errors="replace")
    yield from (f"log: {it!r}" for it in _FORGED.findall(text))
    for line in text.split("\n"):
        if line and (not line.isprintable() or _LINE.fullmatch(line) is None):
            yield f"log: {line[:200]!r}"


def report(abused: Abused) -> Report:
    """Build the table: a row for each kind."""
    begin, settled, end = (f"{it / _MIB:,.0f} MiB" for it in abused.memory)
    middle, longest = median(abused.honest), max(abused.honest)
    return Report(
        "Abuse",
        f"{abused.seconds:,.0f} seconds. {len(abused.honest):,} requests of the honest client, "
        f"answered after {middle:.1f} s in the median and {longest:.1f} s at most; failures of all "
        f"kinds: {len(abused.failures)}. Memory of the service: {begin} at the begin, {settled} "
        f"after the first round of each kind, {end} at the end. Requests to the issuer "
        f"of tokens: {abused.asked:,}.",
        ("kind", "rounds", "answers by status"),
        [
            [kind, f"{abused.rounds[kind]:,}", describe(found)]
            for kind, found in abused.outcomes.items()
        ],
    )


def run(seconds: float, folder: Path) -> Abused:
    """Run broker and service in a folder, and abuse the service."""
    made = {
        "viewer": new_key("eve", "viewer", (), time.time_ns() // 1000),
        "editor": new_key("ada", "editor", (), time.time_ns() // 1000),
    }
    keys = folder / "keys.json"
    write_keys(keys, [key for key, _ in made.values()])
    with EmbeddedBroker(data=folder / "broker") as broker, running_issuer() as issuer:
        environment = {
            "COINCIDE_KEYS_FILE": str(keys),
            "COINCIDE_OIDC_ISSUER": issuer.url,
            "COINCIDE_OIDC_AUDIENCE": AUDIENCE,
            "COINCIDE_REQUEST_TIMEOUT_SECONDS": _REQUEST_SECONDS,
        }
        process, url = service_process(broker.bootstrap, PREFIX, folder, environment)
        process.start()
        try:
            process.wait_until(lambda: _is_ready(url), PATIENCE_SECONDS)
            topics = Topics(PREFIX)
            target = Target(
                urlsplit(url).port or 0,
                made["viewer"][1],
                broker.bootstrap,
                topics.config,
                topics.alarms,
                issuer,
                # It has a key of its own, and no server.
                Issuer(port=0),
            )
            found = asyncio.run(_abuse(target, url, made["editor"][1], process, seconds))
        finally:
            process.stop()
    found.failures.extend(problems(found, forged_lines(process.log_path)))
    return found


async def _abuse(
    target: Target, url: str, key: str, process: ChildProcess, seconds: float
) -> Abused:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=PATIENCE_SECONDS) as client:
        return await Abuse(target, client, process.pid or 0).run(seconds)


def problems(found: Abused, lines: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong after a run: forged lines, growth of memory, requests to the issuer."""
    yield from lines
    _, settled, end = found.memory
    if end - settled > MAX_GROWTH_BYTES:
        yield f"memory: {settled:,} bytes, then {end:,}"
    # A request for the address of the keys, and one for the keys. Without any, tokens are off.
    most = 2 * (1 + int(found.seconds / MIN_INTERVAL_SECONDS))
    if not 1 <= found.asked <= most:
        yield f"issuer: {found.asked:,} requests; must be 1 to {most}"


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").is_success
    except httpx.HTTPError:
        return False


def main() -> int:
    """Run with the options of the command line; return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.abuse")
    parser.add_argument("--seconds", type=float, default=300, help="length of the run")
    parser.add_argument("--folder", type=Path, help="data of the run; default: a new folder")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="coincide-abuse-"))
    found = run(options.seconds, folder)
    for it, times in Counter(found.failures).most_common(20):
        print(f"{times} × {it}", flush=True)
    table = report(found)
    table.show()
    print(table.to_markdown())
    return 1 if found.failures else 0


if __name__ == "__main__":
    sys.exit(main())
