"""The documentation can be built as a site: links, anchors, navigation, REST reference, offline."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy.markdown import plain
from deploy.site.build import DOCS, build
from deploy.site.rest import describe_documents, describe_operations
from deploy.site.topics import describe_topics, topic_heading
from deploy.site.types import type_of
from service.app import create_app
from service.asyncapi import make_document
from service.settings import Settings

# Attributes from which a browser loads, by element; links that a reader may follow are not loaded.
LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src"}
IMPORTED = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")


class PageParts(HTMLParser):
    """Collects the addresses that a page loads, and the ids of its elements."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        address = attributes.get(LOADED.get(tag, ""))
        if address is not None:
            self.addresses.append(address)
        if "id" in attributes:
            self.ids.add(attributes["id"] or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the site, built without a warning."""
    folder = tmp_path_factory.mktemp("site") / "html"
    assert build(folder) == 0
    return folder


@pytest.fixture(scope="module")
def openapi() -> dict[str, Any]:
    """Return the OpenAPI document of the service."""
    return create_app(Settings()).openapi()


@pytest.fixture(scope="module")
def asyncapi() -> dict[str, Any]:
    """Return the AsyncAPI document of the service."""
    return make_document(Settings())


def test_site_has_every_page_and_the_search_index(site: Path) -> None:
    pages = {path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")}
    assert len(pages) > 20
    assert {page for page in pages if not (site / page).is_file()} == set()
    assert "satisfaction" in (site / "searchindex.js").read_text(encoding="utf-8")


def test_site_loads_nothing_from_other_hosts(site: Path) -> None:
    loaded = []
    for path in site.rglob("*.html"):
        loaded += PageParts(path).addresses
    for path in site.rglob("*.css"):
        loaded += [one or other for one, other in IMPORTED.findall(path.read_text("utf-8"))]
    assert len(loaded) > 100
    assert [it for it in loaded if re.match(r"(?!data:)(?:\w+:|//)", it)] == []


def test_every_alert_links_to_an_element_of_the_runbook(site: Path) -> None:
    groups = yaml.safe_load((DOCS.parent / "deploy" / "alerts.yml").read_text("utf-8"))["groups"]
    links = [it["annotations"]["runbook_url"] for group in groups for it in group["rules"]]
    assert len(links) > 10
    # Before the fragment: the external label, or the path in this repository.
    (address,) = {it.partition("#")[0] for it in links}
    assert "docs/runbook.md" in address
    ids = PageParts(site / "runbook.html").ids
    assert [it for it in links if it.partition("#")[2] not in ids] == []


def test_reference_has_every_operation_and_document(site: Path, openapi: dict[str, Any]) -> None:
    operations = (site / "rest.html").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", operations)
    for path, methods in openapi["paths"].items():
        for method in methods:
            assert f"{method.upper()} {path}" in text
    documents = (site / "rest-documents.html").read_text(encoding="utf-8")
    for name in openapi["components"]["schemas"]:
        assert f'id="{name.lstrip("_").lower()}"' in documents


def test_reference_has_every_topic_and_record(site: Path, asyncapi: dict[str, Any]) -> None:
    page = (site / "topics.html").read_text(encoding="utf-8")
    names = [topic_heading(it) for it in asyncapi["channels"].values()]
    for name in (*names, *asyncapi["components"]["messages"]):
        assert f'id="{re.sub(r"[^a-z]+", "-", name)}"' in page


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ("[x](streams.md#no-such-heading)", "no-such-heading"),
        ("[x](no-such-page.md)", "no-such-page"),
        ("![x](images/no-such-picture.svg)", "no-such-picture"),
        ("```{toctree}\nno-such-page\n```", "no-such-page"),
    ],
)
def test_build_fails_at_a_broken_link(
    added: str, problem: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    docs = _small_docs(tmp_path, f"# Home\n\n{added}\n\n```{{toctree}}\nstreams\n```\n")
    assert build(tmp_path / "html", docs) != 0
    assert problem in capfd.readouterr().err


def test_build_fails_if_a_page_is_missing_in_the_navigation(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    docs = _small_docs(tmp_path, "# Home\n\n[Streams](streams.md#a-stream)\n")
    assert build(tmp_path / "html", docs) != 0
    assert "streams.md: WARNING: document isn't included in any toctree" in capfd.readouterr().err
    with (docs / "index.md").open("a", encoding="utf-8") as page:
        page.write("\n```{toctree}\nstreams\n```\n")
    assert build(tmp_path / "html", docs) == 0


def _small_docs(folder: Path, index: str) -> Path:
    docs = folder / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(index, encoding="utf-8")
    (docs / "streams.md").write_text("# Streams\n\n## A stream\n", encoding="utf-8")
    return docs


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer"}, "integer"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"anyOf": [{"type": "string", "minLength": 1}, {"type": "string"}]}, "string"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "array", "items": [{"type": "string"}, {}]}, "list of (string, any value)"),
        ({"type": "object", "additionalProperties": {"type": "number"}}, "object of number"),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "object with `a`, `b`"),
        ({"type": "string", "enum": ["key", "a|b"]}, '`"key"` or `"a\\|b"`'),
        ({"const": "within"}, '`"within"`'),
        ({"$ref": "#/components/schemas/_Place"}, "[Place](rest-documents.md#place)"),
        ({}, "any value"),
    ],
)
def test_type_is_written_in_words(schema: dict[str, Any], shown: str) -> None:
    assert type_of(schema) == shown


def test_description_is_escaped_outside_of_its_code() -> None:
    assert plain("a*b | `a*b` <c>\n[d]") == r"a\*b \| `a*b` \<c\> \[d\]"


def test_fields_of_one_duration_are_one_row(openapi: dict[str, Any]) -> None:
    rows = describe_documents(openapi).splitlines()
    assert "| `window` | duration | required | Max time between A and B. |" in rows
    assert (
        "| `min_uncertainty` | duration |  | Min length of an event's interval; default: 0. |"
        in rows
    )
    assert not [row for row in rows if "`window_ms`" in row]


def test_errors_of_an_operation_are_one_row(openapi: dict[str, Any]) -> None:
    _, _, text = describe_operations(openapi).partition("### `GET /v1/conditions/{name}/plan`\n")
    section, _, _ = text.partition("###")
    assert "| `200` | Successful Response | object; string (image/svg+xml) |" in section
    assert "| `404`, `406`, `422` | Error | [Problem](rest-documents.md#problem) |" in section


def test_topic_has_its_purpose_settings_and_records(asyncapi: dict[str, Any]) -> None:
    _, _, text = describe_topics(asyncapi).partition("### `coincide.audit`\n")
    section, _, _ = text.partition("###")
    assert section.strip().startswith("Writes by REST while access control is on")
    assert "| written by | service |\n| partitions | 1 |" in section
    assert "| `cleanup.policy` | `delete` |" in section
    assert "| records | [`audit`](#audit) |" in section


def test_record_has_its_key_headers_and_fields(asyncapi: dict[str, Any]) -> None:
    _, _, text = describe_topics(asyncapi).partition("### `pair_alarm`\n")
    section, _, _ = text.partition("###")
    assert "\nKey: The join key, or the name of the condition if" in section
    assert '| `ce_type` | `"coincide.alarm.v1"` | required |  |' in section
    assert "| `late` | boolean | required | Whether one of the events was late. |" in section
    rows = re.findall(r"^\| `(a\.[\w.*]+)` \| ([^|]+) \|", section, re.MULTILINE)
    assert rows == [
        ("a.id", "string"),
        ("a.stream", "string"),
        ("a.key", "string or null"),
        ("a.earliest", "integer"),
        ("a.latest", "integer"),
        ("a.attributes", "object of string or number or boolean or null"),
    ]


def test_fields_of_alternatives_and_of_lists_are_rows() -> None:
    entry = {"type": "object", "properties": {"rank": {"type": "integer"}}, "required": ["rank"]}
    payload = {
        "properties": {
            "items": {"type": "array", "items": entry},
            "one": {"anyOf": [{"type": "null"}, {**entry, "description": "The first."}]},
            "by_name": {"type": "object", "additionalProperties": entry},
        }
    }
    message = {
        "summary": "A list.",
        "headers": {},
        "payload": payload,
        "bindings": {"kafka": {"key": {"description": "Any."}}},
    }
    components = {"messages": {"list": message}}
    text = describe_topics({"channels": {}, "operations": {}, "components": components})
    _, _, rows = text.partition("Key: Any.\n\n")
    assert rows.splitlines() == [
        "| field | type |  | meaning |",
        "|---|---|---|---|",
        "| `items` | list of object |  |  |",
        "| `items[].rank` | integer | required |  |",
        "| `one` | null or object |  | The first. |",
        "| `one.rank` | integer | required |  |",
        "| `by_name` | object of object |  |  |",
        "| `by_name.*.rank` | integer | required |  |",
    ]
