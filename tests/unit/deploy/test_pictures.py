"""Pictures of the console: those of `make screenshots` are those of the documentation."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tests.integration.test_console import EXPLAINED, LOOKS, VIEWS
from tests.support.picture_digests import CONSOLE, ROOT, digests_of

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = ROOT / "docs" / "images"
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
    assert sorted(it.name for it in IMAGES.glob("console-*")) == wanted
    console = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"!\[[^\]]+\]\(images/(console-[^)]+)\)", console)) == wanted


def test_pictures_are_those_of_the_present_console() -> None:
    lines = (IMAGES / "console.sha256").read_text(encoding="utf-8").splitlines()
    pictured = {path: digest for digest, path in (it.split("  ") for it in lines)}
    present = digests_of(CONSOLE, ROOT)
    assert len(present) > 20
    changed = {path for path, _ in pictured.items() ^ present.items()}
    assert changed == set(), "run `make screenshots` and look at the pictures"


def test_digests_depend_on_names_and_contents(tmp_path: Path) -> None:
    inner = tmp_path / "console" / "views"
    inner.mkdir(parents=True)
    (inner / "b.js").write_text("two")
    (tmp_path / "console" / "a.js").write_text("one")
    first = digests_of(tmp_path / "console", tmp_path)
    assert list(first) == ["console/a.js", "console/views/b.js"]
    assert first == digests_of(tmp_path / "console", tmp_path)
    (inner / "b.js").write_text("three")
    second = digests_of(tmp_path / "console", tmp_path)
    assert {it for it in first if first[it] != second[it]} == {"console/views/b.js"}
