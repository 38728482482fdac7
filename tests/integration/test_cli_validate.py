"""`coincide validate` with samples, run as a user runs it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from tests.support.command import coincide, running_service
from tests.support.kafka import Sent, create_topics, produce

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.kafka
_RESOURCES = """\
kind: stream
name: alerts
topic: {prefix}.alerts
max_uncertainty: 0s
max_delay: 2s
clock: replay
partitioning: grid
mapping: {{id: id, time: at, format: epoch_s}}
tokens: tags
---
kind: topk_similarity
name: alike
a: alerts
k: 3
window: 10s
"""


def test_validate_estimates_load_from_a_file_and_from_the_topic(
    kafka_bootstrap: str, topic_prefix: str, tmp_path: Path
) -> None:
    resources, events = tmp_path / "resources.yaml", tmp_path / "events.jsonl"
    resources.write_text(_RESOURCES.format(prefix=topic_prefix))
    records = [{"id": f"a{at}", "at": at + 0.25, "tags": ["a", f"t{at % 3}"]} for at in range(20)]
    events.write_text("".join(f"{json.dumps(it)}\n" for it in [*records, {"id": "late"}]))
    with running_service(kafka_bootstrap, topic_prefix, tmp_path) as url:
        environment = {
            "COINCIDE_BOOTSTRAP": kafka_bootstrap,
            "COINCIDE_PREFIX": topic_prefix,
            "COINCIDE_URL": url,
        }

        def validate(*options: str) -> tuple[int, str]:
            done = coincide("validate", "-f", str(resources), *options, environment=environment)
            return done.returncode, done.stdout + done.stderr

        code, shown = validate()
        assert code == 1
        assert shown.startswith("alike is not valid\na: stream 'alerts' does not exist; ")
        # A topic whose records have the timestamps of their sender.
        create_topics(kafka_bootstrap, {f"{topic_prefix}.alerts": 2})
        assert coincide("apply", "-f", str(resources), environment=environment).returncode == 0
        code, shown = validate("--from-topic")
        assert (code, "has no records" in shown) == (6, True)
        code, from_file = validate("--sample", f"alerts={events}")
        assert code == 0
        assert from_file.splitlines()[:2] == ["alike", "valid"]
        assert "warning: alerts: 1 of 21 records " in from_file
        assert "last time 1970-01-01T00:00:19.250000Z" in " ".join(from_file.split())
        now_ms = time.time_ns() // 1_000_000
        lines = events.read_bytes().splitlines()
        sent = [Sent(it, timestamp_ms=now_ms + 10 * at) for at, it in enumerate(lines)]
        produce(kafka_bootstrap, f"{topic_prefix}.alerts", sent)
        answers = [
            json.loads(validate(*options, "--json")[1])
            for options in (
                ("--sample", f"alerts={events}"),
                ("--from-topic",),
                ("--from-topic", "--records", "11", "--rate", "alerts=2.5", "--keys", "3"),
            )
        ]
    given, read, limited = (it["sample"] for it in answers)
    for sample in (given, read):
        assert sample["streams"]["alerts"]["rejected"] == {"missing_field": 1}
        assert sample["streams"]["alerts"]["events_per_second"] == 1.0
        assert sample["expected"]["valid_sets"] == {"alerts": 10}
    assert given["trial"] == read["trial"]
    # The arrivals of the topic have times, those of the file do not.
    assert given["streams"]["alerts"]["arrivals_per_second"] is None
    assert read["streams"]["alerts"]["arrivals_per_second"] == 100.0
    assert limited["streams"]["alerts"]["records"] == 11
    assert limited["expected"]["valid_sets"] == {"alerts": 25}
    assert [it["derived"]["expected_buffered_events"] for it in answers] == [
        {"alerts": 12},
        {"alerts": 12},
        {"alerts": 30},
    ]
