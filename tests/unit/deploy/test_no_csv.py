"""Nothing writes CSV, in which ids such as `=1+1` would be formulas (docs/security.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("cli", "coincide", "correlation", "kafka_client", "service", "spark_jobs")
WRITERS = {"DictWriter", "writer"}


def find_writers(source: str) -> list[int]:
    """Return the lines that write CSV: with the module csv, pandas, or a writer of Spark."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "csv":
            found += [node.lineno for it in node.names if it.name in WRITERS]
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            of_csv = owner == "csv" and node.attr in WRITERS
            of_spark = node.attr == "csv" and "write" in owner
            found += [node.lineno] if of_csv or of_spark or node.attr == "to_csv" else []
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_file_writes_csv(package: str) -> None:
    files = list((ROOT / package).rglob("*.py"))
    assert files
    writing = {str(it): find_writers(it.read_text(encoding="utf-8")) for it in files}
    assert {it: lines for it, lines in writing.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "import csv\ncsv.writer(file)",
        "import csv\ncsv.DictWriter(file, names)",
        "from csv import writer",
        "frame.to_csv(path)",
        "frame.write.csv(path)",
        "frame.write.mode('append').csv(path)",
    ],
)
def test_writers_of_csv_are_found(source: str) -> None:
    assert find_writers(source) != []


def test_readers_of_csv_are_allowed() -> None:
    assert find_writers("import csv\ncsv.reader(file)\nspark.read.csv(path)") == []
