"""The software bill of materials is valid and has the packages of the image, each once."""

from __future__ import annotations

import json
import re
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.sbom.build import DOCKERFILE, to_json


@pytest.fixture(scope="module")
def text() -> str:
    """Return the bill of materials."""
    return to_json()


@pytest.fixture(scope="module")
def components(text: str) -> dict[str, dict[str, Any]]:
    """Return its components by the address of the package, of which each exists once."""
    found = json.loads(text)["components"]
    addresses = [it["purl"] for it in found]
    assert len(set(addresses)) == len(addresses)
    return dict(zip(addresses, found, strict=True))


def test_document_is_valid(text: str) -> None:
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    broken = text.replace('"type": "application"', '"type": "image"')
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(broken) is not None


def test_document_describes_the_project_and_does_not_change(text: str) -> None:
    document = json.loads(text)
    root = document["metadata"]["component"]
    assert (root["name"], root["version"]) == ("coincide", version("coincide"))
    (needs,) = (it["dependsOn"] for it in document["dependencies"] if it["ref"] == root["bom-ref"])
    assert sorted(needs) == sorted(it["bom-ref"] for it in document["components"])
    assert text == to_json()


def test_python_packages_are_those_of_the_python_of_the_image(
    components: dict[str, dict[str, Any]],
) -> None:
    names = [it["name"] for url, it in components.items() if url.startswith("pkg:pypi/")]
    # Pinned once for each range of Python versions.
    assert names.count("numpy") == 1
    # Only on Windows.
    assert "colorama" not in names
    assert f"pkg:pypi/pyspark@{version('pyspark')}" in components
    assert len(names) == len(set(names)) > 30


def test_java_archives_are_modules_of_maven_where_they_name_their_group(
    components: dict[str, dict[str, Any]],
) -> None:
    spark = components[f"pkg:maven/org.apache.spark/spark-core_2.13@{version('pyspark')}"]
    assert (spark["group"], spark["name"]) == ("org.apache.spark", "spark-core_2.13")
    assert [it["alg"] for it in spark["hashes"]] == ["SHA-256"]
    # Archives with a digest: one component for each file.
    hashed = [it for it in components.values() if it.get("hashes")]
    jars = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    assert len(hashed) == len(list(jars.glob("*.jar"))) > 250
    (native,) = (it for it in hashed if re.search(r"-epoll@.*linux-x86_64", it["purl"]))
    assert native["group"] == "io.netty"
    assert native["purl"].partition("?")[0] not in components
    (scala,) = (it for it in hashed if it["name"] == "scala-library")
    assert scala["purl"] == f"pkg:generic/scala-library@{scala['version']}"
    # Modules inside of other archives.
    included = [it["group"] for it in components.values() if it["purl"].startswith("pkg:maven/")]
    assert "org.eclipse.jetty" in included


def test_debian_packages_are_those_of_the_dockerfile(
    components: dict[str, dict[str, Any]],
) -> None:
    names = {it["name"] for url, it in components.items() if url.startswith("pkg:deb/debian/")}
    assert names == {"openjdk-17-jre-headless", "tini"}
    installs = re.findall("apt-get install(.*)", DOCKERFILE.read_text(encoding="utf-8"))
    assert all(name in installs[0].split() for name in names)
