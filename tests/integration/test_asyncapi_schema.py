"""The AsyncAPI document is valid by the JSON Schema that the AsyncAPI project publishes."""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import subprocess
import tarfile
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema_rs import Draft7Validator

from service.asyncapi import make_document
from service.settings import Settings
from tests.support.patience import PATIENCE_SECONDS
from tests.support.tools import skip

if TYPE_CHECKING:
    from pathlib import Path

PACKAGE = "@asyncapi/specs@6.11.1"
SHA256 = "01af8744dc33c0c7eb2e908f6a955319ee58b70ecadc9387d1aeb16c0cd28928"
SCHEMA = "package/schemas/3.0.0.json"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Draft7Validator:
    folder: Path = tmp_path_factory.mktemp("asyncapi")
    npm = shutil.which("npm")
    if npm is None:
        skip("npm, which fetches the schema, is not installed", "apt-get install npm")
    fetched = subprocess.run(  # noqa: S603 - a fixed command
        [npm, "pack", "--silent", PACKAGE],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    if fetched.returncode != 0:
        skip(f"npm cannot fetch {PACKAGE}", f"check npm's registry: {fetched.stderr[-200:]}")
    (archive,) = folder.glob("*.tgz")
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == SHA256
    with tarfile.open(archive) as opened:
        member = opened.extractfile(SCHEMA)
        assert member is not None
        return Draft7Validator(json.loads(member.read()))


@pytest.mark.slow
def test_document_is_valid(schema: Draft7Validator) -> None:
    document = make_document(Settings(prefix="team.a"))
    assert [it.message for it in schema.iter_errors(document)] == []
    for wrong in faulty(document):
        assert not schema.is_valid(wrong)


def faulty(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return documents that are not valid."""
    found = [copy.deepcopy(document) for _ in range(4)]
    found[0]["asyncapi"] = "2.6.0"
    found[1]["operations"]["job_sends_alarms"]["action"] = "write"
    found[2]["channels"]["alarms"]["bindings"]["kafka"]["partitions"] = 0
    found[3]["components"]["messages"]["pair_alarm"]["payload"]["type"] = "map"
    return found
