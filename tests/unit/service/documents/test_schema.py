"""The JSON Schema of files accepts what the models accept and refuses structural faults."""

from __future__ import annotations

import json
import re
import textwrap
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest

from cli.client.resources import read_resources
from correlation.kinds import KINDS
from service.api.documents import read_resources as read_bodies
from service.configuration import Planner
from service.documents.schema import file_schema
from service.errors import InvalidConfigurationError
from service.registry import Registry
from tests.support.surveys import survey_existing

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[4]
SCHEMA = jsonschema_rs.Draft202012Validator(file_schema())
YAML_BLOCK = re.compile(r"^( *)```ya?ml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
JSON_BLOCK = re.compile(
    r"^```json (stream|template|condition)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
STREAM: dict[str, Any] = {
    "kind": "stream",
    "name": "acoustic",
    "topic": "acoustic",
    "max_uncertainty": "200ms",
    "max_delay_ms": 1000,
}
LASTING = {
    "kind": "stream",
    "name": "outages",
    "topic": "outages",
    "max_delay": "1s",
    "mapping": {"begin": "from", "end": "to"},
}
TEMPLATE: dict[str, Any] = {
    "kind": "template",
    "name": "t",
    "buckets": [["0s", "20ms", "0.1"], [20_000, "30ms", 0.9]],
}
PAIR: dict[str, Any] = {"name": "near", **KINDS["mutual_deadline"].example}


class Gone(Enum):
    """Value of a mutation that removes the field; as an enumeration, it has a constant name."""

    GONE = "gone"


GONE = Gone.GONE


def documented() -> Iterator[Any]:
    """Yield the resources of the blocks of the manual, in YAML and in JSON."""
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        for block in YAML_BLOCK.finditer(text):
            document = textwrap.dedent(block.group(2))
            # Resources of Kubernetes have a version too.
            if re.search(r"^kind: ", document, re.MULTILINE) and "apiVersion: " not in document:
                yield pytest.param(document, "", id=place(page, text, block))
        for block in JSON_BLOCK.finditer(text):
            yield pytest.param(block.group(2), block.group(1), id=place(page, text, block))


def place(page: Path, text: str, block: re.Match[str]) -> str:
    return f"{page.name}:{text.count(chr(10), 0, block.start()) + 1}"


@pytest.mark.parametrize(("text", "kind"), list(documented()))
def test_schema_accepts_the_examples_of_the_manual(text: str, kind: str, tmp_path: Path) -> None:
    if kind:
        document = json.loads(text)
        if kind != "condition":
            document["kind"] = kind
        text = json.dumps(document | {"name": "example"})
    file = tmp_path / "example.yaml"
    file.write_text(text)
    for resource in read_resources([file]):
        SCHEMA.validate(resource.to_document())


@pytest.mark.parametrize("kind", KINDS)
def test_schema_describes_every_kind_of_condition(kind: str) -> None:
    document = {"name": "example", "paused": True, **KINDS[kind].example}
    SCHEMA.validate(document)
    assert not SCHEMA.is_valid(document | {"nonsense": 1})
    SCHEMA.validate({"resources": [document, STREAM]})
    examples = file_schema()["$defs"][kind]["examples"]
    assert examples
    for example in examples:
        SCHEMA.validate(example)


def test_manual_has_examples() -> None:
    assert len(list(documented())) > 10


@pytest.mark.parametrize("document", [STREAM, LASTING, TEMPLATE, PAIR])
def test_schema_and_service_accept_valid_documents(document: dict[str, Any]) -> None:
    SCHEMA.validate(document)
    assert read_bodies([document])[0].problems == ()


@pytest.mark.parametrize(
    ("document", "changes"),
    [
        (STREAM, {"name": GONE}),
        (STREAM, {"kind": GONE}),
        (STREAM, {"kind": "river"}),
        (STREAM, {"name": "Not valid"}),
        (STREAM, {"topic": GONE}),
        (STREAM, {"topic": "no spaces"}),
        (STREAM, {"topic": 1}),
        (STREAM, {"colour": "red"}),
        (STREAM, {"paused": True}),
        (STREAM, {"max_delay_ms": GONE}),
        (STREAM, {"max_delay": "1s"}),
        (STREAM, {"max_delay_ms": "1000"}),
        (STREAM, {"max_uncertainty": GONE}),
        (STREAM, {"max_uncertainty": "200"}),
        (STREAM, {"max_uncertainty_us": 5}),
        (STREAM, {"max_skew": "1s", "max_skew_us": 5}),
        (STREAM, {"min_length": "1s"}),
        (STREAM, {"clock": "sun"}),
        (STREAM, {"partitioning": {"by": "grid", "groups": 0}}),
        (STREAM, {"partitioning": "rows"}),
        (STREAM, {"templates": "t"}),
        (STREAM, {"histograms": "yes"}),
        (STREAM, {"max_rate": 0}),
        (STREAM, {"mapping": {"when": "t"}}),
        (STREAM, {"mapping": {"before": "1s"}}),
        (STREAM, {"mapping": {"time": "t", "before": "1s", "before_ms": 1}}),
        (STREAM, {"mapping": {"time": ""}}),
        (STREAM, {"attributes": {"rule": {"type": "string"}}}),
        (STREAM, {"tokens": {"path": "t", "tokenizer": "letters"}}),
        (LASTING, {"max_uncertainty": "1s"}),
        (LASTING, {"max_length": "1s", "max_length_us": 5}),
        (TEMPLATE, {"buckets": []}),
        (TEMPLATE, {"buckets": [[0, 1]]}),
        (TEMPLATE, {"buckets": GONE}),
        (PAIR, {"threshold": 2}),
        (PAIR, {"threshold": "60%"}),
        (PAIR, {"a": GONE}),
        (PAIR, {"window": GONE}),
        (PAIR, {"window_us": 5}),
        (PAIR, {"emit": "some"}),
        (PAIR, {"report_probability": 1}),
        (PAIR, {"paused": "no"}),
        (PAIR, {"where": {"c": {"rule": "x"}}}),
    ],
    ids=str,
)
def test_schema_refuses_structural_faults_that_the_service_refuses(
    document: dict[str, Any], changes: dict[str, Any]
) -> None:
    changed = {name: it for name, it in (document | changes).items() if it is not GONE}
    assert not SCHEMA.is_valid(changed)
    with pytest.raises(InvalidConfigurationError):
        Planner(Registry(1), survey_existing).plan(read_bodies([changed]), 0, prune=True)
