"""Write the software bill of materials: `python -m deploy.sbom [FILE]`."""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.sbom.build import to_json

if __name__ == "__main__":
    file = Path(sys.argv[1] if len(sys.argv) > 1 else "build/sbom.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(to_json(), encoding="utf-8")
