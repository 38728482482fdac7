"""The components of the image, from its Dockerfile, the pinned requirements and pyspark."""

from __future__ import annotations

import json
import re
import tomllib
from hashlib import sha256
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import ZipFile

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
REQUIREMENTS = ROOT / "requirements" / "runtime.txt"
_PIN = re.compile(r"^[a-z0-9][^\\\n]*", re.MULTILINE)
_IMAGE = re.compile(r"^FROM python:(\d+\.\d+)\.\d+-slim-(\w+)@", re.MULTILINE)
_APT = re.compile(r"apt-get install((?:\s+\S+)+?)\s*\\?\n")
_POM = re.compile(r"(?:.*/)?pom\.properties")
_PROPERTY = re.compile(r"^(groupId|artifactId|version)\s*=\s*(\S+)\s*$", re.MULTILINE)
# File names of archives: name, version from the first digit after a hyphen.
_ARCHIVE = re.compile(r"^(.+?)-(\d.*)$")


def to_json() -> str:
    """Return the bill of materials as the text of a CycloneDX file."""
    bom = Bom(components=[*python_packages(), *debian_packages(), *java_archives()])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bom.metadata.component = Component(
        name=project["name"],
        version=project["version"],
        description=project["description"],
        type=ComponentType.APPLICATION,
        bom_ref="root",
    )
    bom.register_dependency(bom.metadata.component, bom.components)
    document = json.loads(JsonV1Dot6(bom).output_as_string())
    # The same inputs have the same document.
    del document["serialNumber"], document["metadata"]["timestamp"]
    return json.dumps(document, indent=2) + "\n"


def python_packages() -> Iterator[Component]:
    """Yield the packages that pip installs in the image, of the Python of the image."""
    python, _ = _image()
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    environment |= {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix"}
    for line in _PIN.findall(REQUIREMENTS.read_text(encoding="utf-8")):
        pin = Requirement(line)
        if pin.marker is None or pin.marker.evaluate(environment):
            version = str(pin.specifier).removeprefix("==")
            yield _component(PackageURL("pypi", name=pin.name, version=version))


def debian_packages() -> Iterator[Component]:
    """Yield the packages of Debian that the Dockerfile installs; the build chooses the versions."""
    _, distribution = _image()
    for arguments in _APT.findall(DOCKERFILE.read_text(encoding="utf-8")):
        for name in arguments.split():
            if not name.startswith("-"):
                yield _component(PackageURL("deb", "debian", name, None, {"distro": distribution}))


def java_archives() -> Iterator[Component]:
    """Yield the archives of pyspark, and the Maven modules that they contain."""
    jars = Path(str(distribution("pyspark").locate_file("pyspark/jars")))
    modules: dict[PackageURL, Component] = {}
    for path in sorted(jars.glob("*.jar")):
        contained = list(_maven_modules(path))
        module = _archive_module(path.stem, contained)
        digest = HashType(alg=HashAlgorithm.SHA_256, content=sha256(path.read_bytes()).hexdigest())
        modules[module] = _component(module, digest)
        own = (module.name, module.version)
        included = [it for it in contained if (it.name, it.version) != own]
        modules |= {it: _component(it) for it in included if it not in modules}
    yield from modules.values()


def _archive_module(stem: str, contained: Iterable[PackageURL]) -> PackageURL:
    """Return the module of an archive by the name of its file, NAME-VERSION[-CLASSIFIER]."""
    for it in contained:
        named, begin, classifier = stem.partition(f"{it.name}-{it.version}")
        if begin and not named:
            added = {"classifier": classifier.lstrip("-")} if classifier else None
            return PackageURL("maven", it.namespace, it.name, it.version, added)
    # Without the group, which its file does not name, it is not a module of Maven.
    name, version = _ARCHIVE.findall(stem)[0]
    return PackageURL("generic", name=name, version=version)


def _maven_modules(path: Path) -> Iterator[PackageURL]:
    """Yield the Maven modules whose properties are in an archive: its own and included ones."""
    with ZipFile(path) as archive:
        for name in archive.namelist():
            if _POM.fullmatch(name):
                found = dict(_PROPERTY.findall(archive.read(name).decode()))
                yield PackageURL("maven", found["groupId"], found["artifactId"], found["version"])


def _image() -> tuple[str, str]:
    """Return the versions of Python and Debian of the image."""
    ((python, debian),) = _IMAGE.findall(DOCKERFILE.read_text(encoding="utf-8"))
    return python, debian


def _component(url: PackageURL, *hashes: HashType) -> Component:
    return Component(
        name=url.name,
        group=url.namespace if url.type == "maven" else None,
        version=url.version,
        purl=url,
        hashes=hashes,
        bom_ref=str(url),
    )
