"""The objects of deploy/kustomization.yaml, as kubectl builds them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
Manifest = dict[str, Any]
_HASH_CHARACTERS = 10
# The first version of kustomize that kubectl 1.27 has.
_KUSTOMIZE = 5


def reason_to_skip() -> str | None:
    """Return why the objects cannot be built here; None if they can."""
    if shutil.which("kubectl") is None:
        return "kubectl is not installed: apt-get install kubernetes-client"
    found = json.loads(_kubectl("version", "--client", "--output=json"))
    # kubectl before 1.21 has a kustomize of 2019, and does not name its version.
    version = str(found.get("kustomizeVersion", "v2"))
    if int(version.removeprefix("v").partition(".")[0]) < _KUSTOMIZE:
        return f"kubectl has kustomize {version}: install kubectl 1.27 or newer"
    return None


def build(folder: Path = DEPLOY) -> list[Manifest]:
    """Return the objects of a kustomization.

    Raises
    ------
    AssertionError
        kubectl refuses the kustomization.
    """
    return list(yaml.safe_load_all(_kubectl("kustomize", str(folder))))


def _kubectl(*arguments: str) -> str:
    # The kubectl of the path, on the project's own files; it does not ask a cluster.
    done = subprocess.run(  # noqa: S603
        [shutil.which("kubectl") or "kubectl", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def find(manifests: list[Manifest], kind: str, name: str) -> Manifest:
    """Return the object of a kind and a name; names of generated ConfigMaps have a hash."""
    (found,) = [
        it for it in manifests if it["kind"] == kind and is_named(it["metadata"]["name"], name)
    ]
    return found


def is_named(given: str, name: str) -> bool:
    """Return whether a name is this one, or this one with the hash of its content."""
    begin, _, suffix = given.rpartition("-")
    return given == name or (begin == name and len(suffix) == _HASH_CHARACTERS)


def environment(manifests: list[Manifest], container: Manifest) -> dict[str, str]:
    """Return the variables that a container gets from its ConfigMaps and its own list.

    Fields of the pod are written as `$(fieldPath)`, and references to variables are replaced.
    """
    found: dict[str, str] = {}
    for source in container.get("envFrom", []):
        found |= find(manifests, "ConfigMap", source["configMapRef"]["name"])["data"]
    own: dict[str, str] = {}
    for variable in container.get("env", []):
        value = variable.get("value")
        if value is None:
            value = f"$({variable['valueFrom']['fieldRef']['fieldPath']})"
        for name, known in own.items():
            value = value.replace(f"$({name})", known)
        own[variable["name"]] = value
    return found | own
