"""Build the site: `python -m deploy.site [FOLDER]`."""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.site.build import build

if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")
    sys.exit(build(folder))
