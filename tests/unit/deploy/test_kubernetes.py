"""deploy/kustomization.yaml builds valid objects that fit each other, the image and the code."""

from __future__ import annotations

import json
import re
import shutil
import textwrap
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import pytest
import yaml

from cli.client.health_command import TIMEOUT_SECONDS
from cli.settings import Settings as CliSettings
from deploy.dashboards import files
from kafka_client.secret_files import secret_variables
from service.access.startup import access_problems
from service.hosts import is_allowed
from service.settings import Settings as ServiceSettings
from spark_jobs.settings import Settings as JobSettings
from tests.support.manifests import (
    DEPLOY,
    ROOT,
    Manifest,
    build,
    environment,
    find,
    reason_to_skip,
)
from tests.support.pods import HOME, IMAGE_CACHE, image_variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic_settings import BaseSettings

if (REASON := reason_to_skip()) is not None:
    pytest.skip(REASON, allow_module_level=True)

# Versions of the API whose schemas the manifests fit: the oldest and the newest.
VERSIONS = ("1.31", "1.37")
OPERATOR = "monitoring.coreos.com/v1"
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
MANIFESTS = build()
OBJECTS = [pytest.param(it, id=f"{it['kind']}-{it['metadata']['name']}") for it in MANIFESTS]
OWNERS = {
    "service": find(MANIFESTS, "Deployment", "coincide"),
    "job": find(MANIFESTS, "StatefulSet", "coincide-job"),
}
PODS = {name: it["spec"]["template"] for name, it in OWNERS.items()}
CONTAINERS = {name: it["spec"]["containers"][0] for name, it in PODS.items()}
# The settings that each container reads, the command of its probes included.
SETTINGS: dict[str, tuple[type[BaseSettings], ...]] = {
    "service": (ServiceSettings,),
    "job": (JobSettings, CliSettings),
}
# Secrets that docs/deployment.md describes, by whether a pod starts without them.
SECRETS = {"coincide-keys": True, "coincide-viewer": True, "coincide-kafka": False} | {
    "coincide-tls": False
}


def _all_containers() -> Iterator[Manifest]:
    for pod in PODS.values():
        yield from chain(pod["spec"]["initContainers"], pod["spec"]["containers"])


def _of_kind(kind: str) -> list[Manifest]:
    return [it for it in MANIFESTS if it["kind"] == kind]


def _selects(selector: dict[str, str], labels: dict[str, str]) -> bool:
    return selector.items() <= labels.items()


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 2**20, "Gi": 2**30}[quantity[-2:]]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", OBJECTS)
def test_object_is_valid(manifest: Manifest, version: str) -> None:
    if manifest["apiVersion"] == OPERATOR:
        # Checked below: Kubernetes does not define these kinds.
        assert manifest["kind"] in {"PrometheusRule", "ServiceMonitor"}
        return
    kubernetes_validate.validate(manifest, version, strict=True)


def test_validation_refuses_unknown_fields() -> None:
    wrong = {**OWNERS["job"], "spec": {**OWNERS["job"]["spec"], "replica": 1}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, VERSIONS[-1], strict=True)


def test_all_objects_are_in_one_namespace_and_have_different_names() -> None:
    names = [(it["kind"], it["metadata"]["name"]) for it in MANIFESTS]
    assert len(set(names)) == len(names)
    assert {it["metadata"]["namespace"] for it in MANIFESTS} == {"coincide"}
    # Nothing asks for rights in the cluster, or holds a secret.
    assert {it["kind"] for it in MANIFESTS} == {
        *("ConfigMap", "Deployment", "NetworkPolicy", "PodDisruptionBudget", "PrometheusRule"),
        *("Service", "ServiceAccount", "ServiceMonitor", "StatefulSet"),
    }


def test_part_without_monitoring_needs_no_operator() -> None:
    core = build(DEPLOY / "kubernetes")
    assert OPERATOR not in {it["apiVersion"] for it in core}
    assert all(it in MANIFESTS for it in core)


def test_containers_have_few_rights() -> None:
    assert len(list(_all_containers())) == 4
    for container in _all_containers():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.parametrize("name", PODS)
def test_pod_runs_as_the_user_of_the_image(name: str) -> None:
    spec = PODS[name]["spec"]
    user = re.search(r"^USER (\d+):(\d+)$", DOCKERFILE, re.MULTILINE)
    assert user is not None
    context = spec["securityContext"]
    assert context["runAsNonRoot"] is True
    assert (context["runAsUser"], context["runAsGroup"]) == tuple(map(int, user.groups()))
    assert context["fsGroup"] == context["runAsGroup"]
    assert context["fsGroupChangePolicy"] == "OnRootMismatch"
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()


@pytest.mark.parametrize("name", PODS)
def test_pod_has_no_token_and_no_variables_of_services(name: str) -> None:
    spec = PODS[name]["spec"]
    account = find(MANIFESTS, "ServiceAccount", spec["serviceAccountName"])
    assert account["automountServiceAccountToken"] is False
    assert spec["automountServiceAccountToken"] is False
    # The Service `coincide` would set COINCIDE_PORT=tcp://...
    assert spec["enableServiceLinks"] is False


def test_containers_have_requests_and_limits() -> None:
    for container in _all_containers():
        resources = container["resources"]
        for kind in ("requests", "limits"):
            assert resources[kind].keys() == {"cpu", "memory", "ephemeral-storage"}
        for name in ("memory", "ephemeral-storage"):
            assert _bytes(resources["requests"][name]) <= _bytes(resources["limits"][name])
    for name, container in CONTAINERS.items():
        limit = _bytes(container["resources"]["limits"]["memory"])
        assert limit == int(COMPOSE["services"][name]["mem_limit"].removesuffix("g")) * 2**30


@pytest.mark.parametrize("name", PODS)
def test_temporary_folders_are_limited(name: str) -> None:
    volumes = PODS[name]["spec"]["volumes"]
    sizes = [_bytes(it["emptyDir"]["sizeLimit"]) for it in volumes if "emptyDir" in it]
    limit = CONTAINERS[name]["resources"]["limits"]["ephemeral-storage"]
    assert len(sizes) == 2
    assert sum(sizes) < _bytes(limit)


@pytest.mark.parametrize("name", PODS)
def test_folders_that_are_written_are_volumes(name: str) -> None:
    spec, container = PODS[name]["spec"], CONTAINERS[name]
    claims = OWNERS[name]["spec"].get("volumeClaimTemplates", [])
    defined = {it["name"] for it in spec["volumes"]} | {it["metadata"]["name"] for it in claims}
    mounts = {it["mountPath"]: it for it in container["volumeMounts"]}
    assert {it["name"] for it in mounts.values()} == defined
    written = {path for path, it in mounts.items() if not it.get("readOnly")}
    assert written == {"/tmp", IMAGE_CACHE, *([HOME] if name == "job" else [])}  # noqa: S108
    # Kernels of the image are copied to the volume that hides them.
    (copying,) = spec["initContainers"]
    cache = image_variables()["NUMBA_CACHE_DIR"]
    (target,) = copying["volumeMounts"]
    assert target["name"] == mounts[IMAGE_CACHE]["name"]
    assert copying["command"] == ["cp", "--archive", cache, f"{target['mountPath']}/"]
    assert cache.startswith(f"{IMAGE_CACHE}/")
    assert f"COPY --from=build --chown=10001:10001 {IMAGE_CACHE} {IMAGE_CACHE}" in DOCKERFILE


def test_job_keeps_its_checkpoint_on_a_volume_that_remains() -> None:
    job = OWNERS["job"]["spec"]
    assert image_variables()["COINCIDE_CHECKPOINT"].startswith(f"{HOME}/")
    assert f"--home-dir {HOME}" in DOCKERFILE
    (claim,) = job["volumeClaimTemplates"]
    assert claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert set(job["persistentVolumeClaimRetentionPolicy"].values()) == {"Retain"}
    # Two jobs must not use a checkpoint: a StatefulSet replaces a pod after it has ended.
    assert job["replicas"] == 1
    assert job["podManagementPolicy"] == "Parallel"
    (headless,) = [it for it in _of_kind("Service") if it["metadata"]["name"] == job["serviceName"]]
    assert headless["spec"]["clusterIP"] == "None"


@pytest.mark.parametrize("name", CONTAINERS)
def test_commands_and_image_are_those_of_compose(name: str) -> None:
    compose = COMPOSE["services"][name]
    assert CONTAINERS[name]["args"] == compose["command"]
    assert {it["image"] for it in _all_containers()} == {compose["image"]}
    # The probes and the arguments are those of the image's entry point.
    assert "command" not in CONTAINERS[name]
    probed = {"service": ["live", "ready"], "job": ["job"]}[name]
    probes = {it: CONTAINERS[name][f"{it}Probe"] for it in ("startup", "readiness", "liveness")}
    for probe in probes.values():
        command, checked = probe["exec"]["command"][:2], probe["exec"]["command"][2:]
        assert command == ["coincide", "health"]
        assert checked[0] in probed
        # The start of Python takes part of it; a lenient check sends two requests.
        assert probe["timeoutSeconds"] >= TIMEOUT_SECONDS * len(checked) + 3
    # Only checks that start a container again are lenient: the job works without the service.
    lenient = {it: "--lenient" in probe["exec"]["command"] for it, probe in probes.items()}
    is_job = name == "job"
    assert lenient == {"startup": is_job, "readiness": False, "liveness": is_job}
    assert "ready" not in probes["liveness"]["exec"]["command"]


def test_containers_have_time_to_start_and_to_stop() -> None:
    service, job = ServiceSettings.model_fields, JobSettings.model_fields
    starting = CONTAINERS["service"]["startupProbe"]
    reading = service["start_timeout_seconds"].default + service["broker_timeout_seconds"].default
    assert starting["periodSeconds"] * starting["failureThreshold"] > reading
    stopping = service["write_timeout_seconds"].default + service["broker_timeout_seconds"].default
    waiting = int(CONTAINERS["service"]["lifecycle"]["preStop"]["exec"]["command"][1])
    assert PODS["service"]["spec"]["terminationGracePeriodSeconds"] > waiting + stopping
    grace = PODS["job"]["spec"]["terminationGracePeriodSeconds"]
    assert grace > job["stop_seconds"].default
    assert f"{grace}s" == COMPOSE["services"]["job"]["stop_grace_period"]
    started = COMPOSE["services"]["job"]["healthcheck"]["start_period"]
    compiling = CONTAINERS["job"]["startupProbe"]
    limit = compiling["periodSeconds"] * compiling["failureThreshold"]
    assert limit > int(started.removesuffix("s"))


@pytest.mark.parametrize("name", CONTAINERS)
def test_container_gets_only_settings_that_it_reads(name: str) -> None:
    given = {it for it in environment(MANIFESTS, CONTAINERS[name]) if it.startswith("COINCIDE_")}
    known = set().union(
        *(
            {f"COINCIDE_{field.upper()}" for field in it.model_fields} | secret_variables(it)
            for it in SETTINGS[name]
        )
    )
    assert given
    assert given <= known


def test_configmaps_of_settings_are_named_by_their_content() -> None:
    used = {
        source["configMapRef"]["name"] for it in CONTAINERS.values() for source in it["envFrom"]
    }
    assert len(used) == 3
    # A changed setting changes the template of the pods, and so starts them again.
    assert all(re.fullmatch(r"coincide-[a-z-]+-[a-z0-9]{10}", it) for it in used)


@pytest.mark.parametrize("address", ["10.1.2.3", "2001:db8::7"])
def test_service_accepts_the_job_and_prometheus(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = image_variables() | environment(MANIFESTS, CONTAINERS["service"])
    for name, value in given.items():
        replaced = value.replace("$(status.podIP)", address)
        monkeypatch.setenv(name, replaced.replace("$(metadata.namespace)", "correlation"))
    settings = ServiceSettings()
    assert settings.is_protected
    assert settings.host == "0.0.0.0"  # noqa: S104 - not bound
    written = f"[{address}]" if ":" in address else address
    for host in ("coincide", "coincide.correlation", "coincide.correlation.svc", written):
        assert is_allowed(f"{host}:{settings.port}", settings.allowed_hosts), host
    assert not is_allowed("evil.example.com", settings.allowed_hosts)
    # Only the Secret with the keys is missing here.
    assert [it.split(":")[0] for it in access_problems(settings)] == ["COINCIDE_KEYS_FILE"]


def test_ports_agree() -> None:
    service = find(MANIFESTS, "Service", "coincide")
    (port,) = service["spec"]["ports"]
    (inside,) = CONTAINERS["service"]["ports"]
    settings = environment(MANIFESTS, CONTAINERS["service"])
    assert port["targetPort"] == port["name"] == inside["name"]
    assert str(port["port"]) == str(inside["containerPort"]) == settings["COINCIDE_PORT"]
    job = environment(MANIFESTS, CONTAINERS["job"])
    assert job["COINCIDE_URL"] == f"http://{service['metadata']['name']}:{port['port']}"
    assert "ports" not in CONTAINERS["job"]
    (endpoint,) = find(MANIFESTS, "ServiceMonitor", "coincide")["spec"]["endpoints"]
    assert endpoint["port"] == port["name"]


def test_selectors_select_pods() -> None:
    labels = {name: pod["metadata"]["labels"] for name, pod in PODS.items()}
    for name, owner in OWNERS.items():
        assert owner["spec"]["selector"]["matchLabels"] == labels[name]
    selected = {
        **{it["metadata"]["name"]: it["spec"]["selector"] for it in _of_kind("Service")},
        "budget": _of_kind("PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"],
    }
    found = {
        name: [pod for pod, it in labels.items() if _selects(selector, it)]
        for name, selector in selected.items()
    }
    assert found == {"coincide": ["service"], "coincide-job": ["job"], "budget": ["service"]}
    (spread,) = PODS["service"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"]["matchLabels"] == labels["service"]
    # A budget makes sense only if another instance takes over.
    assert (
        OWNERS["service"]["spec"]["replicas"]
        > _of_kind("PodDisruptionBudget")[0]["spec"]["minAvailable"]
    )


def _allowed(direction: str, name: str) -> list[Manifest]:
    """Return the rules of the policies of a pod."""
    labels = PODS[name]["metadata"]["labels"]
    policies = [
        it["spec"]
        for it in _of_kind("NetworkPolicy")
        if _selects(it["spec"]["podSelector"]["matchLabels"], labels)
    ]
    refused = {it for policy in policies for it in policy["policyTypes"]}
    assert refused == {"Ingress", "Egress"}
    return [rule for policy in policies for rule in policy.get(direction, [])]


def _ports(rule: Manifest) -> set[int | str]:
    return {it["port"] for it in rule["ports"]}


def test_network_allows_what_is_needed_only() -> None:
    brokers = environment(MANIFESTS, CONTAINERS["job"])["COINCIDE_BOOTSTRAP"]
    kafka = {int(it.rpartition(":")[2]) for it in brokers.split(",")}
    out = {name: _allowed("egress", name) for name in PODS}
    assert [_ports(it) for it in out["service"]] == [{53}, {9092, 9093}]
    assert [_ports(it) for it in out["job"]] == [{53}, {"http"}, {9092, 9093}]
    assert kafka <= {9092, 9093}
    (target,) = out["job"][1]["to"]
    assert target["podSelector"]["matchLabels"] == PODS["service"]["metadata"]["labels"]
    assert _allowed("ingress", "job") == []
    (rest,) = _allowed("ingress", "service")
    assert _ports(rest) == {"http"}
    job, *others = rest["from"]
    assert job == {"podSelector": {"matchLabels": PODS["job"]["metadata"]["labels"]}}
    assert len(others) == 3


def test_secrets_are_read_by_the_group_only() -> None:
    found: dict[str, bool] = {}
    for name, pod in PODS.items():
        paths = {it["name"]: it["mountPath"] for it in CONTAINERS[name]["volumeMounts"]}
        for volume in pod["spec"]["volumes"]:
            if "secret" in volume:
                secret = volume["secret"]
                assert secret["defaultMode"] == 0o440
                found[secret["secretName"]] = not secret.get("optional", False)
                assert paths[volume["name"]].startswith("/etc/coincide/")
    assert found == SECRETS
    manual = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in manual for name in SECRETS)
    given = environment(MANIFESTS, CONTAINERS["service"])["COINCIDE_KEYS_FILE"]
    assert given == "/etc/coincide/keys/keys.json"
    viewer = environment(MANIFESTS, CONTAINERS["job"])["COINCIDE_API_KEY_FILE"]
    (endpoint,) = find(MANIFESTS, "ServiceMonitor", "coincide")["spec"]["endpoints"]
    credentials = endpoint["authorization"]["credentials"]
    assert viewer == f"/etc/coincide/viewer/{credentials['key']}"
    assert credentials["name"] == "coincide-viewer"


def test_prometheus_operator_gets_the_rules_of_the_files() -> None:
    for name, file in (("alerts", files.ALERTS_FILE), ("recorded", files.RULES_FILE)):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        rule = find(MANIFESTS, "PrometheusRule", f"coincide-{name}")
        assert rule["apiVersion"] == OPERATOR
        assert rule["spec"] == content
    mounted = find(MANIFESTS, "ConfigMap", "coincide-rules")["data"]
    assert mounted == {
        path.name: path.read_text(encoding="utf-8")
        for path in (files.ALERTS_FILE, files.RULES_FILE)
    }


def test_prometheus_scrapes_the_service_as_the_job_of_the_alerts() -> None:
    monitor = find(MANIFESTS, "ServiceMonitor", "coincide")
    assert monitor["apiVersion"] == OPERATOR
    assert monitor["spec"].keys() == {"jobLabel", "selector", "endpoints"}
    selector = monitor["spec"]["selector"]["matchLabels"]
    (scraped,) = [it for it in _of_kind("Service") if _selects(selector, it["metadata"]["labels"])]
    job = scraped["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    assert f'up{{job="{job}"}} == 0' in files.ALERTS_FILE.read_text(encoding="utf-8")


def test_every_dashboard_is_a_configmap_for_the_sidecar() -> None:
    found = {
        name: (it["metadata"]["labels"], text)
        for it in _of_kind("ConfigMap")
        if it["metadata"]["name"].startswith("coincide-dashboard-")
        for name, text in it["data"].items()
    }
    assert found == {
        path.name: ({"grafana_dashboard": "1"}, path.read_text(encoding="utf-8"))
        for path in files.FOLDER.glob("*.json")
    }


def test_configmaps_can_be_applied() -> None:
    # `kubectl apply` repeats the object in an annotation, which is limited.
    assert max(len(json.dumps(it)) for it in _of_kind("ConfigMap")) < 262_144


def test_overlay_of_the_manual_changes_what_it_names(tmp_path: Path) -> None:
    manual = (ROOT / "docs" / "deployment.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^ *```yaml\n(.*?)```", manual, re.MULTILINE | re.DOTALL)
    overlay = tmp_path / "overlay"
    overlay.mkdir()
    (overlay / "kustomization.yaml").write_text(textwrap.dedent(block), encoding="utf-8")
    shutil.copytree(DEPLOY, tmp_path / "coincide" / "deploy")
    found = build(overlay)
    assert [(it["kind"]) for it in found] == [it["kind"] for it in MANIFESTS]
    settings = {}
    for name, owner in OWNERS.items():
        changed = find(found, owner["kind"], owner["metadata"]["name"])
        (container,) = changed["spec"]["template"]["spec"]["containers"]
        assert container["image"].startswith("registry.example.com/coincide:")
        settings[name] = environment(found, container)
        assert settings[name]["COINCIDE_BOOTSTRAP"] == "kafka-1:9093,kafka-2:9093"
        properties = json.loads(settings[name]["COINCIDE_KAFKA_PROPERTIES"])
        assert properties["ssl.ca.location"] == "/etc/coincide/kafka/ca.pem"
    # Settings that the overlay does not name remain.
    assert settings["service"]["COINCIDE_REPLICATION_FACTOR"] == "3"
    assert (settings["job"]["COINCIDE_SLOTS"], MANIFESTS != found) == ("4", True)
    labelled = {it["kind"] for it in found if "release" in it["metadata"].get("labels", {})}
    assert labelled == {"PrometheusRule", "ServiceMonitor"}
