"""A pod of deploy/kubernetes without a cluster: its container in namespaces of this machine.

A container gets what its manifest says: user, groups, no capability, a read-only root, its volumes
with the owners and modes that the kubelet sets, its variables, and nothing else of this process.
The root consists of this machine's programs and of the files that the image adds to them. The
network is that of this machine; seccomp and the limits of memory and processors are missing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote
from typing import TYPE_CHECKING

from cli.stack.java import find_java
from cli.stack.processes import ChildProcess
from tests.support.kernel_cache import copy_kernels
from tests.support.manifests import ROOT, Manifest, environment
from tests.support.patience import END_SECONDS

if TYPE_CHECKING:
    from collections.abc import Mapping

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
HOME = "/var/lib/coincide"
IMAGE_CACHE = "/var/cache/coincide"
_TOOLS = ("unshare", "nsenter", "setpriv", "chroot", "mount", "cp")
# Read-only parts of the root, besides what Python needs. Links such as /bin are copied.
_SYSTEM = ("bin", "sbin", "lib", "lib64", "usr")
_POD = {"$(status.podIP)": "127.0.0.1", "$(metadata.namespace)": "coincide"}


def reason_to_skip() -> str | None:
    """Return why this machine cannot run pods; None if it can."""
    if os.geteuid() != 0:
        return "only root can mount the file systems of a pod and change the user"
    missing = [it for it in _TOOLS if shutil.which(it) is None]
    if missing:
        return f"{', '.join(missing)}: not installed"
    # The unshare of the path.
    tried = subprocess.run(
        ["unshare", "--mount", "true"],  # noqa: S607
        capture_output=True,
        check=False,
    )
    return None if tried.returncode == 0 else "this machine refuses new mount namespaces"


def image_variables() -> dict[str, str]:
    """Return the variables of the Dockerfile, with the folder of this Python's programs."""
    found = dict(re.findall(r"^\s*(?:ENV )?([A-Z_]+)=(\S+)", DOCKERFILE, re.MULTILINE))
    return {**found, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}


@dataclass
class Pod:
    """The pod of a Deployment or StatefulSet.

    Attributes
    ----------
    manifests : list of Manifest
        All objects, for the ConfigMaps.
    owner : Manifest
        The Deployment or StatefulSet.
    folder : Path
        Empty folder for root, volumes and log.
    secrets : mapping of str to mapping of str to str
        Contents of Secrets by their names and keys.
    changes : mapping of str to str
        Settings that differ from those of the manifests.
    """

    manifests: list[Manifest]
    owner: Manifest
    folder: Path
    secrets: Mapping[str, Mapping[str, str]]
    changes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.spec: Manifest = self.owner["spec"]["template"]["spec"]
        (self.container,) = self.spec["containers"]
        self.variables = {
            **image_variables(),
            **environment(self.manifests, self.container),
            **self.changes,
        }
        for name in self.variables:
            for reference, known in _POD.items():
                self.variables[name] = self.variables[name].replace(reference, known)
        self._fill_volumes()
        command = self._enter(self.container, ["coincide", *self.container["args"]])
        self.process = ChildProcess(
            self.container["name"], command, self.folder / f"{self.container['name']}.log"
        )

    @property
    def log(self) -> str:
        """Output of the container."""
        return self.process.log_path.read_text(errors="replace")

    def start(self) -> None:
        """Run the init containers to their end, and start the container."""
        for container in self.spec["initContainers"]:
            # The commands of the manifests.
            subprocess.run(  # noqa: S603
                self._enter(container, container["command"]), check=True
            )
        self.process.start()

    def stop(self) -> int | None:
        """Stop the container as the kubelet does, and return its exit code."""
        return self.process.stop(END_SECONDS)

    def probe(self, name: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the command of a probe in the container."""
        return self.execute(*self.container[name]["exec"]["command"], *options)

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the container, as `kubectl exec` does."""
        target = f"--target={self.process.pid}"
        # The commands of the manifests and of the tests.
        return subprocess.run(  # noqa: S603
            ["nsenter", target, "--mount", "--root", "--wd", *self._as_user(), *command],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )

    def _fill_volumes(self) -> None:
        """Create the folders of the volumes with the rights that the kubelet grants."""
        group = self.spec["securityContext"]["fsGroup"]
        claims = self.owner["spec"].get("volumeClaimTemplates", [])
        for name in [it["metadata"]["name"] for it in claims]:
            self._make_volume(name, 0o2775, group)
        for volume in self.spec["volumes"]:
            path = self._make_volume(volume["name"], 0o2777, group)
            if "secret" not in volume:
                continue
            secret = volume["secret"]
            content = self.secrets.get(secret["secretName"])
            assert content is not None or secret.get("optional"), secret["secretName"]
            path.chmod(0o1777)
            kept = {it["key"] for it in secret.get("items", [])}
            version = path / "..2026_01_01"
            version.mkdir()
            (path / "..data").symlink_to(version.name)
            for key, value in (content or {}).items():
                if kept and key not in kept:
                    continue
                (version / key).write_text(value, encoding="utf-8")
                os.chown(version / key, 0, group)
                (version / key).chmod(secret["defaultMode"])
                (path / key).symlink_to(f"..data/{key}")

    def _make_volume(self, name: str, mode: int, group: int) -> Path:
        path = self.folder / "volumes" / name
        path.mkdir(parents=True, exist_ok=True)
        os.chown(path, 0, group)
        path.chmod(mode)
        return path

    def _as_user(self) -> list[str]:
        """Return the command that takes the user, the groups and the rights of the container."""
        context = self.spec["securityContext"]
        user, group = context["runAsUser"], context["runAsGroup"]
        return [
            *("setpriv", f"--reuid={user}", f"--regid={group}"),
            f"--groups={group},{context['fsGroup']}",
            *("--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"),
            *("env", "--ignore-environment"),
            *(f"{name}={value}" for name, value in self.variables.items()),
        ]

    def _enter(self, container: Manifest, command: list[str]) -> list[str]:
        """Return a command that runs another one in the file system of a container."""
        assert container["securityContext"]["readOnlyRootFilesystem"]
        root = self.folder / f"root-{container['name']}"
        root.mkdir(exist_ok=True)
        image_cache = self._image_cache()
        steps = [
            "set -e",
            f"mount -t tmpfs -o mode=755 coincide {quote(str(root))}",
            f"cd {quote(str(root))}",
            "cp --archive /etc etc",
            "printf '%s\\n' " + quote(self._user_entry()) + " >> etc/passwd",
            "mkdir -p tmp proc dev root",
            "mount --rbind /proc proc",
            "mount --rbind /dev dev",
        ]
        for name in _SYSTEM:
            if Path(f"/{name}").is_symlink():
                steps.append(f"cp --archive /{name} {name}")
            elif Path(f"/{name}").is_dir():
                steps += self._bind(Path(f"/{name}"), f"/{name}", "ro")
        seen = [Path(f"/{name}") for name in _SYSTEM]
        java = find_java().path.resolve().parents[1]
        steps += self._bind(image_cache, IMAGE_CACHE, "ro")
        # The working folder of the image, which its user owns.
        steps += [f"mkdir -p .{HOME}", f"chown {self._ids()} .{HOME}"]
        for mount in container["volumeMounts"]:
            path = self.folder / "volumes" / mount["name"]
            mode = "ro" if mount.get("readOnly") else "rw"
            steps += self._bind(path, mount["mountPath"], mode)
        # After the volumes: the project may be in /tmp, which is one of them.
        for path in (ROOT, Path(sys.prefix), Path(sys.base_prefix), java):
            if not any(path.is_relative_to(it) for it in seen):
                steps += self._bind(path, str(path), "ro")
                seen.append(path)
        steps.append("mount -o remount,ro .")
        inside = join([*self._as_user(), *command])
        steps.append(f"exec chroot . sh -c {quote(f'cd {HOME} && exec {inside}')}")
        return ["unshare", "--mount", "--propagation=private", "sh", "-c", "\n".join(steps)]

    def _bind(self, source: Path, place: str, mode: str) -> list[str]:
        target = quote(f".{place}")
        return [
            f"mkdir -p {target}",
            f"mount --bind {quote(str(source))} {target}",
            f"mount -o remount,bind,{mode} {target}",
        ]

    def _ids(self) -> str:
        context = self.spec["securityContext"]
        return f"{context['runAsUser']}:{context['runAsGroup']}"

    def _user_entry(self) -> str:
        return f"coincide:x:{self._ids()}::{HOME}:/bin/sh"

    def _image_cache(self) -> Path:
        """Return the folder of the compiled kernels that the image has: those of the tests."""
        folder = self.folder / "image-cache"
        if folder.exists():
            return folder
        compiled = os.environ.get("NUMBA_CACHE_DIR")
        if compiled is not None and Path(compiled).is_dir():
            copy_kernels(Path(compiled), folder / "numba")
        else:
            (folder / "numba").mkdir(parents=True)
        context = self.spec["securityContext"]
        for path in (folder, *folder.rglob("*")):
            os.chown(path, context["runAsUser"], context["runAsGroup"])
        return folder
