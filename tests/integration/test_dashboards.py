"""Every panel and every recording rule, evaluated by a real Prometheus that scrapes a running job.

Rounds of events are sent until all panels have values. Panels that stay empty are listed with the
reason.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import time
import uuid
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from cli.stack.broker import free_port
from cli.stack.processes import ChildProcess
from deploy.dashboards.files import DEPLOY, FOLDER
from deploy.dashboards.rules import rules
from tests.support.command import running_service
from tests.support.job import JobUnderTest
from tests.support.kafka import Sent, create_topics, produce
from tests.support.patience import END_SECONDS, PATIENCE_SECONDS, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMETHEUS = shutil.which("prometheus")
pytestmark = [
    pytest.mark.kafka,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.needs_tool("prometheus", "apt-get install prometheus"),
]

SECOND = 1_000_000
MINUTE = 60 * SECOND
# Events of a live stream in a round.
PER_ROUND = 20
# Live streams have the response time and the delay, recorded streams advance with their events.
STREAMS: dict[str, dict[str, Any]] = {
    "acoustic": {
        "max_uncertainty": "1s",
        "max_delay": "1h",
        "attributes": {"color": "color"},
        "where": {"color": {"not": "blue"}},
    },
    "seismic": {"max_uncertainty": "1s", "max_delay": "1h"},
    "leak": {"max_uncertainty": "10min", "max_delay": "1min", "clock": "replay"},
    "report": {"max_uncertainty": "0s", "max_delay": "1min", "clock": "replay"},
    "words": {
        "max_uncertainty": "0s",
        "max_delay": "1s",
        "clock": "replay",
        "partitioning": "grid",
        "tokens": "words",
    },
}
PAIR = {"kind": "mutual_deadline", "a": "acoustic", "b": "seismic", "window": "1s"}
QUERY = """\
DETECT Unreported
ON event a: leak
   not event r: report
WHERE a.rt.end <= r.rt.end, r.rt.end <= a.rt.end + 5 min
END"""
CONDITIONS: dict[str, dict[str, Any]] = {
    "near": {**PAIR, "threshold": "0.6", "max_pairs": 1_000_000},
    "many": {**PAIR, "threshold": "0.6", "output": "factored"},
    "unreported": {"kind": "event_query", "query": QUERY, "threshold": "0.5"},
    "top": {"kind": "topk_similarity", "a": "words", "k": 3, "window": "10min"},
}
# Queries that may be empty, by dashboard, panel and legend.
MAY_BE_EMPTY = {
    ("overview", "Firing alerts", "{{alertname}}"): "an alert may fire or not",
    ("job", "Topics created again", "{{topic}}"): "no topic was deleted",
}


class Asked(NamedTuple):
    """A query of a panel."""

    board: str
    panel: str
    legend: str
    expression: str
    instant: bool

    @property
    def place(self) -> tuple[str, str, str]:
        """The dashboard, the panel and the legend."""
        return self[:3]


def _asked() -> list[Asked]:
    return [
        Asked(path.stem, panel["title"], it["legendFormat"], it["expr"], it.get("instant", False))
        for path in sorted(FOLDER.glob("*.json"))
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]
        for it in panel.get("targets", [])
    ]


class Watcher:
    """A Prometheus that scrapes one service.

    Parameters
    ----------
    url : str
        Address of the service.
    folder : Path
        Folder of its configuration, data and log.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.target = url.removeprefix("http://")
        listen = f"127.0.0.1:{free_port()}"
        self.client = httpx.Client(base_url=f"http://{listen}/api/v1", timeout=PATIENCE_SECONDS)
        options = {
            "config.file": _configure(self.target, folder),
            "storage.tsdb.path": folder / "tsdb",
            "web.listen-address": listen,
        }
        command = [PROMETHEUS or "", *(f"--{name}={value}" for name, value in options.items())]
        self.process = ChildProcess("prometheus", command, folder / "prometheus.log")

    def ask(self, asked: Asked, end: float | None = None, **chosen: str) -> list[dict[str, Any]]:
        """Return the series of a query that have a number, as a viewer of the panel sees them.

        Parameters
        ----------
        asked
            The query.
        end
            End of the ten minutes that the viewer sees, in seconds since 1970; by default now.
        **chosen
            Values of the dashboard's variables that the viewer has chosen.
        """
        query = self.fill(asked.expression, **chosen)
        if asked.instant:
            return self.get("query", query=query)
        end = end or time.time()
        return self.get("query_range", query=query, start=end - 600, end=end, step=5)

    def fill(self, text: str, **chosen: str) -> str:
        """Return an expression with values in place of its variables; the filters select all."""
        variables = {
            "instance": self.target,
            "stream": ".*",
            "condition": ".*",
            "keys": "1",
            # Twenty scrapes; a busy machine may miss some.
            "__rate_interval": "20s",
            **chosen,
        }
        return re.sub(r"\$([a-z_]\w*)", lambda found: variables[found.group(1)], text)

    def values(self, query: str) -> list[str]:
        """Return the values from which a viewer chooses, of a variable `label_values(…)`."""
        found = re.fullmatch(r"label_values\((.+), (\w+)\)", query)
        assert found is not None, query
        selector, label = found.groups()
        answer = self.client.get(f"/label/{label}/values", params={"match[]": self.fill(selector)})
        assert answer.status_code == 200, f"{query}: {answer.text}"
        names: list[str] = answer.json()["data"]
        return names

    def get(self, path: str, **parameters: str | float) -> list[dict[str, Any]]:
        """Return the series of an answer that have a number."""
        answer = self.client.get(f"/{path}", params=parameters)
        assert answer.status_code == 200, f"{parameters}: {answer.text}"
        found = answer.json()["data"]["result"]
        return [
            it for it in found if any(v != "NaN" for _, v in it.get("values", [it.get("value")]))
        ]

    def rules(self) -> list[dict[str, Any]]:
        """Return all recording and alert rules with their state."""
        groups = self.client.get("/rules").json()["data"]["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def ready(self) -> bool:
        """Return whether it answers."""
        try:
            return self.client.get("/status/runtimeinfo").status_code == 200
        except httpx.TransportError:
            return False


def _configure(target: str, folder: Path) -> Path:
    """Write deploy/prometheus.yml with another target, and faster."""
    document = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    document["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    document["rule_files"] = [str(DEPLOY / name) for name in document["rule_files"]]
    document["scrape_configs"][0]["static_configs"] = [{"targets": [target]}]
    path = folder / "prometheus.yml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


@contextmanager
def watching(url: str, folder: Path) -> Iterator[Watcher]:
    """Run Prometheus."""
    watcher = Watcher(url, folder)
    watcher.process.start()
    try:
        watcher.process.wait_until(watcher.ready, PATIENCE_SECONDS)
        yield watcher
    finally:
        watcher.client.close()
        watcher.process.stop(END_SECONDS)


def send_round(job: JobUnderTest, number: int) -> None:
    """Send events of all streams: pairs, a late event, one that is filtered, and a dead letter."""
    chance = random.Random(number)  # noqa: S311 - a reproducible choice, no secret
    now = time.time_ns() // 1_000

    def event(name: str, latest: int, length: int, **fields: object) -> dict[str, Any]:
        times = {"earliest": latest - length, "latest": latest}
        return {"id": f"{name}{number}-{chance.getrandbits(40):x}", **times, **fields}

    def live(name: str) -> dict[str, Any]:
        return event(
            name, now - chance.randrange(3 * SECOND), chance.randrange(SECOND), color="red"
        )

    begin = number * 100 * MINUTE
    sent: dict[str, list[dict[str, Any]]] = {
        "acoustic": [live("a") for _ in range(PER_ROUND)],
        "seismic": [live("s") for _ in range(PER_ROUND)],
        "leak": [event("l", begin + it * MINUTE, 10 * MINUTE) for it in (20, 40, 60)],
        "report": [event("r", begin + it * MINUTE, 0) for it in (19, 90)],
        "words": [
            event("w", number * MINUTE + it * SECOND, 0, words=chance.sample("ABCDEFGH", 4))
            for it in range(20)
        ],
    }
    sent["acoustic"] += [event("old", now - 120 * MINUTE, 0), event("b", now, 0, color="blue")]
    for stream, events in sent.items():
        records = [Sent(json.dumps(it).encode(), b"k") for it in events]
        records += [Sent(b"not JSON", b"k")] if stream == "acoustic" else []
        produce(job.bootstrap, f"{job.prefix}-{stream}", records)


def test_every_panel_and_rule_has_a_value(kafka_bootstrap: str, tmp_path: Path) -> None:
    prefix = f"boards{uuid.uuid4().hex[:10]}"
    job = JobUnderTest(kafka_bootstrap, prefix, tmp_path)
    create_topics(kafka_bootstrap, {f"{prefix}-{name}": 1 for name in STREAMS})
    with (
        running_service(kafka_bootstrap, prefix, tmp_path) as url,
        httpx.Client(base_url=url, timeout=PATIENCE_SECONDS) as client,
        watching(url, tmp_path) as watcher,
    ):
        for name, document in STREAMS.items():
            put(client, f"/v1/streams/{name}", {**document, "topic": f"{prefix}-{name}"})
        for name, document in CONDITIONS.items():
            put(client, f"/v1/conditions/{name}", document)
        try:
            job.start()
            check_panels(job, client, watcher)
            check_variables(watcher)
            check_named(watcher)
            check_rules(watcher)
            check_labels(client.get("/metrics").text)
        finally:
            job.process.stop(5)


def put(client: httpx.Client, path: str, document: dict[str, Any]) -> None:
    """Register a resource."""
    answer = client.put(path, json=document)
    assert answer.status_code == 201, answer.text


def has_read(client: httpx.Client, count: int) -> bool:
    """Return whether the job has read a number of events of the stream `seismic`."""
    seen = client.get("/v1/streams/seismic/status").json()["seen"]
    return seen is not None and seen["events"] == count


def check_panels(job: JobUnderTest, client: httpx.Client, watcher: Watcher) -> None:
    """Send events until each panel has values, with the labels of its legend."""
    empty = {it.place: it for it in _asked()}
    assert len(empty) == len(_asked()) > 60
    assert MAY_BE_EMPTY.keys() <= empty.keys()
    awaited = empty.keys() - MAY_BE_EMPTY.keys()
    deadline = time.monotonic() + PATIENCE_SECONDS
    number = 0
    while awaited & empty.keys():
        assert time.monotonic() < deadline, f"empty: {sorted(awaited & empty.keys())}"
        job.process.check()
        watcher.process.check()
        number += 1
        send_round(job, number)
        wait_until(partial(has_read, client, number * PER_ROUND))
        for place, asked in list(empty.items()):
            series = watcher.ask(asked)
            if series:
                labels = set(re.findall(r"{{(\w+)}}", asked.legend))
                assert all(labels <= it["metric"].keys() for it in series), (place, series[0])
                del empty[place]


def check_variables(watcher: Watcher) -> None:
    """Check that each variable that is a query has the values that exist."""
    expected = {
        "instance": {watcher.target},
        "stream": STREAMS.keys(),
        "condition": CONDITIONS.keys(),
    }
    found = [
        (path.stem, it["name"], it["query"])
        for path in sorted(FOLDER.glob("*.json"))
        for it in json.loads(path.read_text(encoding="utf-8"))["templating"]["list"]
        if it["type"] == "query"
    ]
    assert {name for _, name, _ in found} == expected.keys()
    for board, name, query in found:
        assert set(watcher.values(query)) == expected[name], (board, name)


def check_named(watcher: Watcher) -> None:
    """Check that a viewer who chooses one stream or condition sees its series and no others."""
    end = time.time()
    checked = set()
    for asked in _asked():
        if asked.board not in {"streams", "conditions"}:
            continue
        every = watcher.ask(asked, end)
        for name in ("stream", "condition"):
            if f"${name}" not in asked.expression:
                continue
            chosen = min(it["metric"][name] for it in every)
            series = watcher.ask(asked, end, **{name: chosen})
            assert {it["metric"][name] for it in series} == {chosen}, asked.place
            checked.add((asked.board, name))
    assert checked >= {("streams", "stream"), ("conditions", "condition")}


def check_rules(watcher: Watcher) -> None:
    """Check that each rule is evaluated without errors, and that each record has values."""
    wait_until(lambda: all(it["health"] != "unknown" for it in watcher.rules()))
    found = watcher.rules()
    assert [it for it in found if it["health"] != "ok"] == []
    alerts = (DEPLOY / "alerts.yml").read_text(encoding="utf-8").count("- alert: ")
    assert len([it for it in found if it["type"] == "alerting"]) == alerts > 0
    for rule in rules():
        recorded = {**rule.labels, "instance": watcher.target}
        matchers = ",".join(f'{label}="{value}"' for label, value in recorded.items())
        assert watcher.get("query", query=f"{rule.record}{{{matchers}}}"), rule.record
        assert watcher.get("query", query=rule.expression), rule.record


def check_labels(page: str) -> None:
    """Check that the manual lists the labels of every metric on the page."""
    manual = (DEPLOY.parent / "docs" / "operations.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| (`coincide_\w+`[^|]*) \| ([^|]*)\|", manual, re.MULTILINE)
    documented = {
        name: set(filter(None, labels.strip().split(", ")))
        for names, labels in table
        for name in re.findall(r"`(\w+)`", names)
    }
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(page):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = [it for sample in family.samples for it, value in sample.labels.items() if value]
        found[name] = set(labels) - {"le"}
    # prometheus_client adds the time at which its own histogram was made.
    del found["coincide_http_request_duration_seconds_created"]
    assert len(found) > 40
    wrong = {name: labels for name, labels in found.items() if labels != documented[name]}
    assert wrong == {}
