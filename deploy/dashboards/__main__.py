"""Write the generated files."""

from __future__ import annotations

from deploy.dashboards.files import write

if __name__ == "__main__":
    write()
