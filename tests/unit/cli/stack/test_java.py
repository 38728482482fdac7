"""Search for the Java runtime, and the message when it is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cli.errors import MissingJavaError
from cli.stack.java import find_java, install_line, parse_major
from tests.support.messages import assert_names, naming

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "25-ea" 2025-09-16', 25),
        ("no version here", None),
    ],
)
def test_parse_major_reads_every_form_of_version(text: str, major: int | None) -> None:
    assert parse_major(text) == major


@pytest.mark.parametrize(
    ("system", "release", "line"),
    [
        (
            "Linux",
            {"ID": "debian", "VERSION_ID": "12"},
            "sudo apt-get install openjdk-17-jre-headless",
        ),
        (
            "Linux",
            {"ID": "debian", "VERSION_ID": "13"},
            "sudo apt-get install openjdk-21-jre-headless",
        ),
        # Debian's next release carries no number.
        ("Linux", {"ID": "debian"}, "sudo apt-get install openjdk-21-jre-headless"),
        (
            "Linux",
            {"ID": "ubuntu", "ID_LIKE": "debian", "VERSION_ID": "24.04"},
            "sudo apt-get install openjdk-17-jre-headless",
        ),
        ("Linux", {"ID": "fedora"}, "sudo dnf install java-21-openjdk-headless"),
        (
            "Linux",
            {"ID": "rocky", "ID_LIKE": "rhel centos fedora"},
            "sudo dnf install java-21-openjdk-headless",
        ),
        (
            "Darwin",
            {},
            'brew install openjdk@17 && export JAVA_HOME="$(brew --prefix openjdk@17)"',
        ),
    ],
)
def test_install_line_fits_the_system(system: str, release: dict[str, str], line: str) -> None:
    assert install_line(system, release) == line


def test_install_line_names_the_versions_for_another_system() -> None:
    assert_names(install_line("Linux", {"ID": "alpine"}), "OpenJDK 17 or 21", "PATH", "JAVA_HOME")


def _fake_java(home: Path, version: str, code: int = 0) -> None:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {code}\n")
    java.chmod(0o755)


def test_find_java_prefers_java_home_to_path(tmp_path: Path) -> None:
    _fake_java(tmp_path / "home", "21.0.1")
    _fake_java(tmp_path / "other", "17.0.1")
    variables = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "other" / "bin")}
    java = find_java(variables)
    assert (java.path, java.major) == (tmp_path / "home" / "bin" / "java", 21)


def test_find_java_takes_path_when_java_home_is_not_set(tmp_path: Path) -> None:
    _fake_java(tmp_path, "17.0.1")
    assert find_java({"PATH": str(tmp_path / "bin")}).path == tmp_path / "bin" / "java"


def test_find_java_tells_how_to_install_it_when_it_is_missing(tmp_path: Path) -> None:
    with pytest.raises(MissingJavaError, match=naming("Java 17", "not found", "install")):
        find_java({"PATH": str(tmp_path)})


def test_find_java_refuses_one_that_is_too_old(tmp_path: Path) -> None:
    _fake_java(tmp_path, "11.0.2")
    java = tmp_path / "bin" / "java"
    with pytest.raises(MissingJavaError, match=naming("Java 17", f"{java} is Java 11")):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_find_java_says_so_when_it_does_not_run(tmp_path: Path) -> None:
    _fake_java(tmp_path, "17", code=1)
    with pytest.raises(MissingJavaError, match="does not run"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})
