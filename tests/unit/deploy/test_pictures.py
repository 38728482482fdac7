"""Pictures of the console: those of `make screenshots` are those of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.test_console import EXPLAINED, LOOKS, VIEWS

ROOT = Path(__file__).parents[3]
SIGN_IN = "sign-in"


def pictures() -> list[str]:
    """Return the names of the pictures that `make screenshots` copies to the documentation."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.search(r"^PICTURES := (.*)$", makefile, re.MULTILINE)
    assert found is not None
    return found[1].split()


def test_pictures_are_of_views_and_looks_that_the_test_takes() -> None:
    shown = [it.rsplit("-", 2) for it in pictures()]
    assert {(screen, scheme) for _, screen, scheme in shown} <= set(LOOKS)
    # Each view, and no other.
    assert {view for view, _, _ in shown} == {*VIEWS, *EXPLAINED, SIGN_IN}


def test_pictures_show_a_phone_and_the_dark_scheme() -> None:
    shown = pictures()
    assert len(shown) == len(set(shown))
    assert any("-phone-" in it for it in shown)
    assert any(it.endswith("-desktop-dark") for it in shown)


def test_pictures_are_files_of_the_documentation_and_each_is_shown() -> None:
    wanted = sorted(f"console-{it}.png" for it in pictures())
    assert sorted(it.name for it in (ROOT / "docs" / "images").glob("console-*")) == wanted
    console = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"!\[[^\]]+\]\(images/(console-[^)]+)\)", console)) == wanted
