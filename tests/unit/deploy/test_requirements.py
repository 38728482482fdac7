"""The pinned requirements agree with each other and with pyproject.toml, and builds use them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FILES = ("build", "dev", "runtime")
INSTALL = re.compile(r"pip install (.*)")


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")


def _pins(name: str) -> dict[str, list[Requirement]]:
    """Return the pins of a file by name; a package may have one for each range of Pythons."""
    found: dict[str, list[Requirement]] = {}
    for line in _text(f"requirements/{name}.txt").splitlines():
        if not line.lstrip().startswith("#"):
            requirement, *hashes = line.split(" --hash=sha256:")
            assert hashes
            pin = Requirement(requirement)
            found.setdefault(pin.name, []).append(pin)
    return found


@pytest.mark.parametrize("name", FILES)
def test_every_pin_is_one_version_with_hashes(name: str) -> None:
    for pins in _pins(name).values():
        assert all(re.fullmatch(r"==[^,*]+", str(pin.specifier)) for pin in pins)


@pytest.mark.parametrize("name", FILES)
def test_file_is_made_by_the_command_of_the_manual(name: str) -> None:
    command = re.search(
        r"^# +(uv pip compile .*)$", _text(f"requirements/{name}.txt"), re.MULTILINE
    )
    assert command is not None
    assert command.group(1) in " ".join(_text("CONTRIBUTING.md").split())


def test_image_and_tests_have_the_same_versions() -> None:
    tested = _pins("dev")
    assert {name: pins for name, pins in _pins("runtime").items() if tested[name] != pins} == {}


def test_build_backend_is_the_pinned_one() -> None:
    required = PROJECT["build-system"]["requires"]
    assert PROJECT["dependency-groups"]["build"] == required
    (backend,) = map(Requirement, required)
    pins = _pins("build")
    assert set(pins) == {backend.name}
    assert backend.specifier.contains(str(pins[backend.name][0].specifier).removeprefix("=="))


@pytest.mark.parametrize("file", ["Dockerfile", "Makefile"])
def test_builds_install_nothing_without_hashes(file: str) -> None:
    packages, project = INSTALL.findall(_text(file))
    assert "--require-hashes" in packages
    assert "requirements/build.txt" in packages
    assert {"--no-deps", "--no-build-isolation"} <= set(project.split())


def test_engine_gets_the_files_that_the_image_copies() -> None:
    copied = re.findall(r"requirements/\w+\.txt", _text("Dockerfile"))
    assert set(copied) == {"requirements/runtime.txt", "requirements/build.txt"}
    assert {f"!{name}" for name in copied} <= set(_text(".dockerignore").splitlines())
