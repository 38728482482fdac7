# ruff: noqa: INP001 - a script of the Makefile, not a package
"""Add the Java archives of the image to a software bill of materials: `make sbom`.

`cyclonedx-py` lists the Python packages. The image also contains the archives of Spark's Kafka
connector, which cli/stack/ivy.xml names and spark_jobs/driver/jars.sha256 pins.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from spark_jobs.driver.jars import CONNECTOR, pinned

_DESCRIPTOR = Path(__file__).parents[1] / "cli" / "stack" / "ivy.xml"


def list_archives() -> list[dict[str, Any]]:
    """Return the archives of the connector as CycloneDX components, sorted by name.

    Raises
    ------
    ValueError
        The pinned archives are not those of the descriptor.
    """
    # A file of this project.
    dependencies = ET.parse(_DESCRIPTOR).iter("dependency")  # noqa: S314
    described = {
        f"{it.attrib['name']}-{it.attrib['rev']}.jar": it.attrib
        for it in dependencies
        if it.attrib["conf"].startswith("spark->")
    }
    pins = pinned(CONNECTOR)
    if described.keys() != pins.keys():
        different = sorted(described.keys() ^ pins.keys())
        raise ValueError(f"{CONNECTOR.name} and {_DESCRIPTOR.name} differ in {different}")
    return [
        {
            "bom-ref": name,
            "type": "library",
            "group": it["org"],
            "name": it["name"],
            "version": it["rev"],
            "purl": f"pkg:maven/{it['org']}/{it['name']}@{it['rev']}",
            "hashes": [{"alg": "SHA-256", "content": pins[name]}],
        }
        for name, it in sorted(described.items())
    ]


def main(path: Path) -> None:
    """Add the archives to the bill of materials in a file."""
    bill = json.loads(path.read_text(encoding="utf-8"))
    bill["components"] += list_archives()
    path.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
