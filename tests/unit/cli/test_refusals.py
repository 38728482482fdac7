"""Errors of the service are shown with the place in the file and with similar names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from cli.client.near_names import did_you_mean
from cli.main import main
from tests.support.messages import assert_names

if TYPE_CHECKING:
    from pathlib import Path

_RESOURCES = """\
kind: stream
name: sensor
topic: sensor
---

kind: mutual_deadline
name: near
a: sensor
b: sesmic
"""
_STREAMS = ["acoustic", "seismic"]


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer as a service does that has two streams and the condition `footsteps`."""

    def answer(_: httpx.Client, method: str, path: str, **__: object) -> httpx.Response:
        request = httpx.Request(method, f"http://here{path}")
        place = request.url.path
        if method == "GET" and place in {"/v1/streams", "/v1/conditions"}:
            names = _STREAMS if place == "/v1/streams" else ["footsteps"]
            page = {"items": [{"name": name} for name in names], "next": None}
            return httpx.Response(200, json=page, request=request)
        if (method, place) == ("PUT", "/v1/config"):
            errors = [
                {"resource": key, "field": field, "problem": problem, "remedy": remedy}
                for key, field, problem, remedy in (
                    ("condition/near", "b", "no such stream", "register it first"),
                    ("condition/near", "window", "is missing", "add it"),
                    ("stream/sensor", "max_delay", "is missing", "add it"),
                )
            ]
            return httpx.Response(422, json={"errors": errors}, request=request)
        return httpx.Response(404, json={"detail": "there is none"}, request=request)

    monkeypatch.setattr(httpx.Client, "request", answer)


@pytest.mark.parametrize(("command", "exit_code"), [("apply", 6), ("diff", 2)])
def test_refusal_names_file_document_and_line_of_each_resource(
    command: str, exit_code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "resources.yaml"
    file.write_text(_RESOURCES)
    assert _run(command, "-f", str(file)) == exit_code
    said = capsys.readouterr()
    assert said.out == ""
    near, sensor = said.err.splitlines()
    assert near.startswith(f"error: {file}, document 2 (line 6), condition near: ")
    assert_names(near, 422, "b: no such stream", "window: is missing", "seismic instead of sesmic")
    assert sensor.startswith(f"{file}, document 1 (line 1), stream sensor: ")
    assert_names(sensor, 422, "max_delay: is missing")


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        (("reset-watermark", "acustic"), "acoustic instead of acustic"),
        (("produce", "-", "--stream", "seismc"), "seismic instead of seismc"),
        (
            ("produce", "-", "--topic", "t", "--close-stream", "seismc"),
            "seismic instead of seismc",
        ),
        (
            ("explain", "footstep", "--a", "x", "--b", "y"),
            "footsteps instead of footstep",
        ),
        (("reset-watermark", "zzz"), None),
        (("explain", "footsteps", "--a", "x", "--b", "y"), None),
    ],
)
def test_names_near_an_unknown_one_are_suggested(
    command: tuple[str, ...], hint: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(*command) == 6
    said = capsys.readouterr().err
    assert_names(said, 404, *([] if hint is None else [f"did you mean {hint}?"]))
    assert hint is not None or "did you mean" not in said


@pytest.mark.parametrize("command", ["up", "job"])
def test_starts_of_the_job_exclude_each_other(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(command, "--rebuild", "--from-now") == 2
    said = capsys.readouterr().err
    assert_names(said, "--rebuild", "--from-now", "--from-beginning", "use one")


def test_did_you_mean_names_what_is_near() -> None:
    assert did_you_mean("ab1", ["ab2", "ab3", "zz"]) == (
        "; did you mean ab3 or ab2 instead of ab1?"
    )
    assert did_you_mean("x", []) == ""
