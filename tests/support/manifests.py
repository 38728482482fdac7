"""The objects of deploy/kustomization.yaml, as kubectl builds them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
Manifest = dict[str, Any]


def build(folder: Path = DEPLOY) -> list[Manifest]:
    """Return the objects of a kustomization.

    Raises
    ------
    AssertionError
        kubectl is not installed, or refuses the kustomization.
    """
    kubectl = shutil.which("kubectl")
    assert kubectl is not None, "kubectl is not installed: apt-get install kubernetes-client"
    # The kubectl of the path, on the project's own files; it does not ask a cluster.
    done = subprocess.run(  # noqa: S603
        [kubectl, "kustomize", str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


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


_HASH_CHARACTERS = 10
