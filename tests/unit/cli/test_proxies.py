"""Answers of a proxy in front of the service: pages for people with the status of a success."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from cli.client.rest import ServiceClient
from cli.errors import ServiceError
from cli.main import main
from tests.support.messages import naming

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_PAGE = "<html>Please log in</html>"
_STREAM = "{kind: stream, name: x, topic: t, max_uncertainty: 1s, max_delay: 1s}"
_ANSWERS: list[tuple[int, dict[str, Any]]] = [
    (200, {"html": _PAGE}),
    (200, {"text": ""}),
    (200, {"json": ["no object"]}),
    (204, {}),
    (302, {"headers": {"Location": "https://login.example.com/"}}),
]


@pytest.fixture(params=_ANSWERS)
def proxied(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer every request as a proxy does."""
    status, content = request.param

    def answer(_: httpx.Client, method: str, path: str, **__: object) -> httpx.Response:
        asked = httpx.Request(method, f"http://here{path}")
        return httpx.Response(status, request=asked, **content)

    monkeypatch.setattr(httpx.Client, "request", answer)


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.get("/v1/streams"),
        lambda client: client.find("/v1/streams/x"),
        lambda client: client.names("stream"),
        lambda client: client.text("/v1/config", accept="application/yaml"),
        lambda client: client.post("/v1/conditions:validate", {}),
        lambda client: client.put("/v1/streams/x", {}),
        lambda client: client.put_configuration([], prune=False, dry_run=True),
    ],
)
def test_answer_of_a_proxy_is_an_error(call: Callable[[ServiceClient], object]) -> None:
    with (
        ServiceClient("http://here") as client,
        pytest.raises(ServiceError, match=naming("answer of Coincide", "proxy")),
    ):
        call(client)


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(("command", "code"), [("diff", 2), ("apply", ServiceError.exit_code)])
def test_exit_code_is_that_of_an_error(
    command: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "stream.yaml"
    file.write_text(_STREAM)
    with pytest.raises(SystemExit) as ended:
        main([command, "--file", str(file)])
    assert ended.value.code == code
    shown = capsys.readouterr().err
    assert "Traceback" not in shown
    assert "COINCIDE_URL" in shown
