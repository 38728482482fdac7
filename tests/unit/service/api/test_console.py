"""The files of the console: headers, errors, and what the files may contain."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import httpx
import pytest

from service.app import create_app
from service.settings import Settings

# The lifespan does not begin: nothing asks for Kafka.
APP = create_app(Settings(bootstrap="127.0.0.1:1"))
FOLDER = Path(__file__).parents[4] / "service" / "console"
FILES = sorted(str(path.relative_to(FOLDER)) for path in FOLDER.rglob("*.*"))
SCRIPTS = [name for name in FILES if name.endswith(".js")]
MAX_LINES = 400
MAX_COLUMNS = 100
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Ways to convert a string to HTML or to code.
SINKS = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|srcdoc"
    r"|setAttribute\(\"(on|style)|javascript:|DOMParser|createContextualFragment"
)


def ask(method: str, target: str, headers: dict[str, str] | None = None) -> httpx.Response:
    async def asked() -> httpx.Response:
        transport = httpx.ASGITransport(APP)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.request(method, target, headers=headers)

    return asyncio.run(asked())


def read(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", FILES)
def test_every_file_is_served_with_its_type(name: str) -> None:
    answer = ask("GET", f"/console/{name}")
    assert (answer.status_code, answer.text) == (200, read(name))
    assert answer.headers["content-type"] == TYPES[Path(name).suffix]


@pytest.mark.parametrize("path", ["/", "/console/app.js", "/console/console.css"])
def test_answers_forbid_everything_that_the_console_does_not_need(path: str) -> None:
    headers = ask("GET", path).headers
    policy = dict(it.split(" ", 1) for it in headers["content-security-policy"].split("; "))
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "connect-src": "'self'",
        "img-src": "'self' blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-cache"


def test_page_is_at_the_root() -> None:
    page = ask("GET", "/")
    assert (page.status_code, page.text) == (200, read("index.html"))
    head = ask("HEAD", "/")
    assert (head.status_code, head.text) == (200, "")
    assert ask("GET", "/", {"If-None-Match": page.headers["etag"]}).status_code == 304


@pytest.mark.parametrize(
    "path",
    [
        "/console/",
        "/console/views",
        "/console/missing.js",
        "/console/../settings.py",
        "/console/%2e%2e/settings.py",
        "/console/..%2f..%2fpyproject.toml",
        "/console//etc/passwd",
        "/console/%00",
        "/console/" + "x" * 5000,
    ],
)
def test_other_paths_are_refused_with_a_problem(path: str) -> None:
    answer = ask("GET", path)
    assert (answer.status_code, answer.json()["error_code"]) == (404, 40400)


@pytest.mark.parametrize("path", ["/", "/console/app.js"])
def test_files_cannot_be_written(path: str) -> None:
    answer = ask("POST", path)
    assert (answer.status_code, answer.json()["error_code"]) == (405, 40500)
    assert answer.headers["Allow"] == "GET, HEAD"


def test_console_is_not_part_of_the_api() -> None:
    assert [it for it in APP.openapi()["paths"] if it == "/" or "console" in it] == []


@pytest.mark.parametrize("name", FILES)
def test_files_name_no_address_outside_the_service(name: str) -> None:
    # The name of a namespace is not requested.
    text = read(name).replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"https?:|//[a-z0-9-]+\.[a-z]", text) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_scripts_never_convert_strings_to_html(name: str) -> None:
    assert SINKS.findall(read(name)) == []


@pytest.mark.parametrize("name", SCRIPTS)
def test_imports_of_scripts_exist(name: str) -> None:
    for names, target in re.findall(r'^import \{([^}]*)\} from "(.+)";$', read(name), re.MULTILINE):
        path = (FOLDER / name).parent / target
        exported = re.findall(
            r"^export (?:async )?(?:function|const|class) (\w+)", path.read_text(), re.MULTILINE
        )
        assert {it.strip() for it in names.split(",")} <= set(exported), target


def test_scripts_do_not_import_each_other_in_a_circle() -> None:
    imports = {
        name: {
            str(((FOLDER / name).parent / target).resolve().relative_to(FOLDER))
            for target in re.findall(r' from "(.+)";$', read(name), re.MULTILINE)
        }
        for name in SCRIPTS
    }
    while leaves := [name for name, targets in imports.items() if not targets & imports.keys()]:
        for name in leaves:
            del imports[name]
    assert imports == {}


@pytest.mark.parametrize("name", FILES)
def test_files_are_short(name: str) -> None:
    lines = read(name).splitlines()
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if len(line) > MAX_COLUMNS] == []
