"""The software bill of materials (`make sbom`) lists the pinned packages and Java archives."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from deploy.sbom import main
from spark_jobs.driver.jars import CONNECTOR, pinned

ROOT = Path(__file__).parents[3]
PINS = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)


def test_bill_of_materials_lists_every_pin(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    recipe = re.search(r"\$\(BIN\)/cyclonedx-py (.*)", makefile)
    assert recipe is not None
    path = tmp_path / "sbom.json"
    arguments = shlex.split(recipe[1].replace("build/sbom.json", str(path)))
    subprocess.run([sys.executable, "-m", "cyclonedx_py", *arguments], cwd=ROOT, check=True)  # noqa: S603 - the recipe of the Makefile
    main(path)
    text = path.read_text(encoding="utf-8")
    document = json.loads(text)
    version = SchemaVersion.from_version(document["specVersion"])
    assert JsonStrictValidator(version).validate_str(text) is None
    found = [it["purl"].lower() for it in document["components"]]
    pins = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    packages = {f"pkg:pypi/{name.lower()}@{version}" for name, version in PINS.findall(pins)}
    assert {it for it in found if it.startswith("pkg:pypi/")} == packages
    archives = {
        f"{it['name']}-{it['version']}.jar": it["hashes"][0]["content"]
        for it in document["components"]
        if it["purl"].startswith("pkg:maven/org.apache.")
    }
    assert archives == pinned(CONNECTOR)
    assert len(found) == len(packages) + len(archives)
