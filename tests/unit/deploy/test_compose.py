"""All names in deploy/compose.yaml and the Dockerfile exist, and both files agree."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml

from cli.client.health_command import TIMEOUT_SECONDS, Checked
from cli.main import app
from cli.settings import Settings as CliSettings
from service.access.startup import access_problems
from service.api.health import BROKER_SECONDS
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings

if TYPE_CHECKING:
    from pydantic_settings import BaseSettings

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, Any] = COMPOSE["services"]
PROMETHEUS = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
# The settings that each role reads.
ROLES: dict[str, tuple[type[BaseSettings], ...]] = {
    "service": (ServiceSettings,),
    "job": (JobSettings, CliSettings),
    "cli": (CliSettings,),
}
# Address that only this machine reaches.
LOOPBACK = "127.0.0.1:"


def _variables(*classes: type[BaseSettings]) -> set[str]:
    return {f"COINCIDE_{name}".upper() for found in classes for name in found.model_fields}


def _commands() -> set[str]:
    group = typer.main.get_group(app)
    return set(group.list_commands(typer.Context(group)))


def _dockerfile_variables() -> set[str]:
    return set(re.findall(r"^\s*(?:ENV )?(COINCIDE_\w+)=", DOCKERFILE, re.MULTILINE))


@pytest.mark.parametrize("role", ROLES)
def test_compose_gives_a_role_only_settings_that_it_reads(role: str) -> None:
    given = {name for name in SERVICES[role]["environment"] if name.startswith("COINCIDE_")}
    assert given <= _variables(*ROLES[role])


def test_dockerfile_sets_only_settings_that_exist() -> None:
    found = _dockerfile_variables()
    assert found == {"COINCIDE_CHECKPOINT", "COINCIDE_HOST", "COINCIDE_JAVA_CACHE"}
    assert found <= _variables(ServiceSettings, JobSettings, CliSettings)


@pytest.mark.parametrize("role", ROLES)
def test_compose_runs_a_command_that_exists(role: str) -> None:
    assert SERVICES[role]["command"][0] in _commands()


def test_dockerfile_default_is_a_command_that_exists() -> None:
    default = re.search(r'^CMD \["(\w+)"\]', DOCKERFILE, re.MULTILINE)
    assert default is not None
    assert default.group(1) in _commands()


@pytest.mark.parametrize(("role", "checked"), [("service", Checked.READY), ("job", Checked.JOB)])
def test_health_checks_are_those_of_the_command(role: str, checked: Checked) -> None:
    assert SERVICES[role]["healthcheck"]["test"] == ["CMD", "coincide", "health", checked.value]
    timeout = SERVICES[role]["healthcheck"]["timeout"]
    # The start of Python takes part of it.
    assert int(timeout.removesuffix("s")) >= TIMEOUT_SECONDS + 3
    assert f"--timeout={timeout}" in DOCKERFILE
    assert TIMEOUT_SECONDS > 2 * BROKER_SECONDS
    assert 'CMD ["coincide", "health"]' in DOCKERFILE
    port = SERVICES["service"]["environment"]["COINCIDE_PORT"]
    assert SERVICES["job"]["environment"]["COINCIDE_URL"] == f"http://service:{port}"


def test_prometheus_scrapes_the_port_of_the_service() -> None:
    targets = PROMETHEUS["scrape_configs"][0]["static_configs"][0]["targets"]
    port = SERVICES["service"]["environment"]["COINCIDE_PORT"]
    assert targets == [f"service:{port}"]
    assert SERVICES["service"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert f"EXPOSE {port}" in DOCKERFILE
    assert ServiceSettings.model_fields["port"].default == int(port)


def test_prometheus_container_has_every_file_its_configuration_names() -> None:
    mounted = dict(volume.split(":")[:2] for volume in SERVICES["prometheus"]["volumes"])
    inside = {path: DEPLOY / file for file, path in mounted.items() if file.startswith("./")}
    assert all(file.is_file() for file in inside.values())
    needed = {"prometheus.yml", *PROMETHEUS["rule_files"]}
    assert {f"/etc/prometheus/{name}" for name in needed} == set(inside)


def test_grafana_has_the_dashboards_and_the_prometheus_of_the_stack() -> None:
    mounted = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"])
    inside = {path: DEPLOY / folder for folder, path in mounted.items()}
    provisioning = inside["/etc/grafana/provisioning"]
    assert provisioning.is_dir()
    provided = yaml.safe_load((provisioning / "dashboards" / "coincide.yml").read_text("utf-8"))
    path = provided["providers"][0]["options"]["path"]
    assert (inside[path] / "overview.json").is_file()
    environment = SERVICES["grafana"]["environment"]
    assert environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == f"{path}/overview.json"
    sources = yaml.safe_load((provisioning / "datasources" / "prometheus.yml").read_text("utf-8"))
    (source,) = sources["datasources"]
    assert source["url"] == "http://prometheus:9090"
    assert SERVICES["prometheus"]["ports"] == ["127.0.0.1:9090:9090"]
    assert source["jsonData"]["timeInterval"] == PROMETHEUS["global"]["scrape_interval"]


def test_compose_opens_ports_to_this_machine_only() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith(LOOPBACK) for port in ports)


def test_containers_have_memory_limits_and_rotate_their_logs() -> None:
    for service in SERVICES.values():
        assert re.fullmatch(r"[0-9]+[mg]", service["mem_limit"])
        assert service["logging"]["driver"] == "json-file"
        assert service["logging"]["options"] == {"max-size": "10m", "max-file": "3"}


def test_containers_have_few_rights() -> None:
    for service in SERVICES.values():
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["cap_drop"] == ["ALL"]
        assert service["pids_limit"] == 4096
        assert "privileged" not in service
        assert "cap_add" not in service


@pytest.mark.parametrize("role", ["service", "cli"])
def test_read_only_containers_can_write_where_they_must(role: str) -> None:
    assert SERVICES[role]["read_only"] is True
    assert SERVICES[role]["tmpfs"] == ["/tmp:size=256m"]  # noqa: S108 - in the container
    cache = re.search(r"NUMBA_CACHE_DIR=(\S+)/numba", DOCKERFILE)
    assert cache is not None
    assert SERVICES[role]["volumes"] == [f"service-kernels:{cache.group(1)}"]
    # The user of the image is not root: it needs no capability.
    assert re.search(r"^USER 10001:10001$", DOCKERFILE, re.MULTILINE)


def test_service_of_compose_starts_and_accepts_its_clients() -> None:
    environment = SERVICES["service"]["environment"]
    (host,) = json.loads(environment["COINCIDE_ALLOWED_HOSTS"])
    assert SERVICES["cli"]["environment"]["COINCIDE_URL"].startswith(f"http://{host}:")
    assert PROMETHEUS["scrape_configs"][0]["static_configs"][0]["targets"][0].startswith(host)
    given = {name.removeprefix("COINCIDE_").lower(): it for name, it in environment.items()}
    values = {**given, "allowed_hosts": (host,), "host": "0.0.0.0"}  # noqa: S104 - not bound
    assert access_problems(ServiceSettings.model_validate(values)) == []


def test_compose_waits_only_for_services_with_a_health_check() -> None:
    for service in SERVICES.values():
        for name, needed in service.get("depends_on", {}).items():
            assert needed == {"condition": "service_healthy"}
            assert "test" in SERVICES[name]["healthcheck"]


def test_compose_names_every_volume_it_mounts() -> None:
    mounted = {
        volume.split(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
    }
    assert {name for name in mounted if not name.startswith("./")} == set(COMPOSE["volumes"])


def test_job_keeps_its_checkpoint_on_a_volume() -> None:
    inside = re.search(r"COINCIDE_CHECKPOINT=(\S+)", DOCKERFILE)
    assert inside is not None
    assert f"checkpoint:{inside.group(1)}" in SERVICES["job"]["volumes"]


def test_containers_stop_later_than_the_job_gives_a_batch_up() -> None:
    grace = SERVICES["job"]["stop_grace_period"]
    assert int(grace.removesuffix("s")) > JobSettings.model_fields["stop_seconds"].default


def test_clients_use_the_listener_that_the_broker_advertises_to_containers() -> None:
    kafka = SERVICES["kafka"]["environment"]
    advertised = dict(
        entry.split("://") for entry in kafka["KAFKA_ADVERTISED_LISTENERS"].split(",")
    )
    for role in ROLES:
        assert SERVICES[role]["environment"]["COINCIDE_BOOTSTRAP"] == advertised["CONTAINERS"]
    assert [advertised["MACHINE"]] == [JobSettings.model_fields["bootstrap"].default]
    listeners = [entry.split(":")[0] for entry in kafka["KAFKA_LISTENERS"].split(",")]
    protocols = kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(",")
    assert listeners == [entry.split(":")[0] for entry in protocols]


def test_broker_image_is_the_version_of_the_embedded_broker() -> None:
    ivy = (ROOT / "cli" / "stack" / "ivy.xml").read_text(encoding="utf-8")
    version = re.search(r'name="kafka_2.13" rev="([\d.]+)"', ivy)
    assert version is not None
    assert SERVICES["kafka"]["image"].startswith(f"apache/kafka:{version.group(1)}@")


def test_images_of_others_are_pinned_by_digest() -> None:
    images = {it["image"] for name, it in SERVICES.items() if name not in ROLES}
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?", DOCKERFILE, re.MULTILINE)
    names = {name for _, name in stages}
    images |= {image for image, _ in stages if image not in names}
    assert len(images) == 4
    for image in images:
        assert re.fullmatch(r"[a-z/]+:v?\d+\.\d+\.\d+[a-z-]*@sha256:[0-9a-f]{64}", image), image


def test_image_is_tagged_with_the_version_of_the_project() -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', project, re.MULTILINE)
    assert version is not None
    assert {SERVICES[role]["image"] for role in ROLES} == {f"coincide:{version.group(1)}"}


def test_files_name_no_registry() -> None:
    images = [service["image"] for service in SERVICES.values()]
    images += re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    # A host has a dot or a port before the first slash.
    assert not [image for image in images if re.match(r"[^/]*[.:][^/]*/", image)]
