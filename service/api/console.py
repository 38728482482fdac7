"""Routes of the console: its page at `/`, and the files of the page under `/console/`.

The page loads files from this service only. Its policy forbids inline scripts and styles, and the
conversion of strings to HTML: names and ids from Kafka are shown as text only. The files contain no
data, and are read without credentials; the requests of the page need those of its reader.
"""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.staticfiles import StaticFiles

router = APIRouter(include_in_schema=False)
# The folder is looked at when the first file is requested, not at import.
_FILES = StaticFiles(directory=Path(__file__).parents[1] / "console", check_dir=False)
_PAGE = "index.html"
_FOLDER = "/console/"
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    # blob: the pictures of plans, which are requested with an Accept header.
    "img-src": "'self' blob:",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
_HEADERS = {
    "Content-Security-Policy": "; ".join(f"{name} {value}" for name, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # A file is checked before each use: after an upgrade, all files are of one version.
    "Cache-Control": "no-cache",
}


def is_of_console(path: str) -> bool:
    """Return whether a path is that of the page or below the folder of its files."""
    return path == "/" or path.startswith(_FOLDER)


@router.api_route("/", methods=["GET", "HEAD"])
async def get_page(request: Request) -> Response:
    """Return the page of the console."""
    return await _answer(_PAGE, request)


@router.api_route(_FOLDER + "{path:path}", methods=["GET", "HEAD"])
async def get_file(path: str, request: Request) -> Response:
    """Return a file of the console."""
    return await _answer(path, request)


async def _answer(path: str, request: Request) -> Response:
    response = await _FILES.get_response(path, request.scope)
    response.headers.update(_HEADERS)
    return response
