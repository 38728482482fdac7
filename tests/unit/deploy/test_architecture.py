"""The page of the architecture lists floors as the contracts do; its files and folders exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
KINDS = (ROOT / "docs" / "kinds.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
FLOORS = PAGE[PAGE.index("## Floors") : PAGE.index("## Processing of a record")]
PICTURE = FLOORS.split("```")[1]

Floors = list[set[str]]


def layers(contract: dict[str, Any]) -> Floors:
    return [set(floor.split(" | ")) for floor in contract["layers"]]


CONTRACTS = [it for it in PROJECT["tool"]["importlinter"]["contracts"] if it["type"] == "layers"]
# The first one orders the packages, the others the modules of a package.
PACKAGES = [{it for it in floor if "." not in it} for floor in layers(CONTRACTS[0])]
CONTAINERS = {it["containers"][0]: layers(it) for it in CONTRACTS[1:]}


def test_every_path_of_the_pages_exists() -> None:
    paths = re.findall(r"`([\w/]+(?:\.py|\.toml|/))`", PAGE + KINDS)
    shown = [path for path in paths if "/" in path.rstrip("/") or path.rstrip("/") in ROOT_NAMES]
    assert len(shown) > 20
    assert [path for path in shown if not (ROOT / path).exists()] == []


ROOT_NAMES = {path.name for path in ROOT.iterdir()}


def test_every_folder_of_the_packages_is_on_the_page() -> None:
    packages = ("correlation", "coincide", "spark_jobs", "service", "cli")
    folders = [it.parent.name for name in packages for it in (ROOT / name).glob("*/**/__init__.py")]
    assert len(folders) > 15
    assert [name for name in folders if not re.search(rf"\b{name}\b", FLOORS)] == []


def test_picture_lists_the_packages_from_top_to_bottom() -> None:
    names = re.findall(r"^\w+", PICTURE, re.MULTILINE)
    assert [floor_of(name, PACKAGES) for name in names] == sorted(
        floor_of(name, PACKAGES) for name in names
    )
    assert set(names) == set().union(*PACKAGES)
    rows = [it for it in re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE) if it in set(names)]
    assert rows == names


@pytest.mark.parametrize("package", ["cli", "service", "spark_jobs", "correlation"])
def test_picture_lists_the_floors_of_a_package_as_its_contract(package: str) -> None:
    (text,) = re.findall(rf"^{package} +((?:.|\n )*)", PICTURE, re.MULTILINE)
    found = [set(floor.split(" | ")) for floor in " ".join(text.split()).split(" > ")]
    assert found == CONTAINERS[package]


@pytest.mark.parametrize("kind", ["timing", "event_query", "topk"])
def test_table_lists_the_folders_of_a_kind_from_top_to_bottom(kind: str) -> None:
    (row,) = re.findall(rf"^\| `correlation/{kind}/` \| (.*) \|$", FLOORS, re.MULTILINE)
    named = re.findall(r"`(\w+)/`", row)
    assert set(named) == {it.parent.name for it in ROOT.glob(f"correlation/{kind}/*/__init__.py")}
    places = [floor_of(name, CONTAINERS[f"correlation.{kind}"]) for name in named]
    assert places == sorted(places)


def floor_of(name: str, floors: Floors) -> int:
    (place,) = (number for number, floor in enumerate(floors) if name in floor)
    return place
