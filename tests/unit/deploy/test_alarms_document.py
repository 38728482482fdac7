"""The example answer of the page about alarms is an answer of the route."""

from __future__ import annotations

import json
import re
from pathlib import Path

from fastapi.routing import APIRoute

from service.api.alarms import AlarmPage, router

PAGE = (Path(__file__).parents[3] / "docs" / "alarms.md").read_text(encoding="utf-8")


def test_example_is_an_answer() -> None:
    (example,) = re.findall(r"^```json alarms\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    shown = json.loads(example)
    page = AlarmPage.model_validate(shown)
    assert page.model_dump() == shown
    last = page.items[-1]
    assert page.next == f"{last.timestamp // 1000}-{last.offset}-{last.partition}-{last.topic}"


def test_every_parameter_is_explained() -> None:
    routes = [it for it in router.routes if isinstance(it, APIRoute)]
    parameters = {it.name for route in routes for it in route.dependant.query_params}
    rows = re.findall(r"^\| (`.*?`) \|", PAGE, re.MULTILINE)
    assert {name.strip("`") for row in rows for name in row.split(", ")} == parameters
