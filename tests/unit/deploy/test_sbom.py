"""The software bill of materials (`make sbom`) lists every pinned runtime package."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PINS = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)", re.MULTILINE)


def test_bill_of_materials_lists_every_pin(tmp_path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    recipe = re.search(r"\$\(BIN\)/cyclonedx-py (.*)", makefile)
    assert recipe is not None
    path = tmp_path / "sbom.json"
    arguments = shlex.split(recipe[1].replace("build/sbom.json", str(path)))
    subprocess.run([sys.executable, "-m", "cyclonedx_py", *arguments], cwd=ROOT, check=True)  # noqa: S603 - the recipe of the Makefile
    document = json.loads(path.read_text(encoding="utf-8"))
    assert document["bomFormat"] == "CycloneDX"
    found = {(it["name"].lower(), it["version"]) for it in document["components"]}
    pins = (ROOT / "requirements" / "runtime.txt").read_text(encoding="utf-8")
    assert found == {(name.lower(), version) for name, version in PINS.findall(pins)}
    assert all(it["purl"].startswith("pkg:pypi/") for it in document["components"])
