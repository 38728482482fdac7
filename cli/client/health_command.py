"""Health checks of containers (``health``)."""

from __future__ import annotations

import ssl
from enum import Enum
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING, Annotated

import typer

from cli.errors import CliError, ServiceError
from cli.settings import read_settings
from correlation.printable import printable

if TYPE_CHECKING:
    from service.settings import Settings as ServiceSettings

# `readyz` waits for Kafka up to twice the time limit of service/api/health.py, then it answers 503.
TIMEOUT_SECONDS = 8


class Checked(Enum):
    """Kind of health check: the service answers, the service is ready, or the job runs."""

    LIVE = "live"
    READY = "ready"
    JOB = "job"


def health(
    checked: Annotated[
        Checked,
        typer.Argument(
            help="live, ready: the service of this machine, with its own settings. job: what the "
            "service at COINCIDE_URL says about the job."
        ),
    ] = Checked.LIVE,
    *,
    timeout: Annotated[
        float, typer.Option(help="Max time for the answer of the service, in seconds.", min=0.1)
    ] = TIMEOUT_SECONDS,
    lenient: Annotated[
        bool,
        typer.Option(
            "--lenient",
            help="job: exit code 0 also while its state is unknown, because the service does not "
            "answer, cannot reach Kafka, or refuses the request. For checks that restart the job.",
        ),
    ] = False,
) -> None:
    """Check the service or the job once: exit code 0 if it is healthy, else 1 and the reason."""
    try:
        if checked is Checked.JOB:
            problem = _check_job(timeout, lenient=lenient)
        else:
            problem = _check_service(checked, timeout)
    except CliError as error:
        problem = str(error)
    if problem is not None:
        typer.echo(printable(problem), err=True)
        raise typer.Exit(1)


def _check_job(timeout_seconds: float, *, lenient: bool) -> str | None:
    """Ask the service about the job; return the problem, or None.

    Parameters
    ----------
    timeout_seconds
        Max time for each answer of the service.
    lenient
        Return None while the state of the job is unknown.
    """
    # Imported here: slow to import, and --help does not need it.
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    settings = read_settings()
    with ServiceClient(settings.url, timeout_seconds, settings) as service:
        try:
            if lenient:
                # A service that is not ready does not read the records of the job.
                service.get("/readyz")
            job = service.get("/v1/job")
        except ServiceError:
            if lenient:
                return None
            raise
    if job["up"]:
        return None
    if job["state"] == "stalled":
        return "the job is stalled: it runs, but completes no batch"
    return "the job does not run, or has not reported recently"


def _check_service(checked: Checked, timeout_seconds: float) -> str | None:
    """Ask the service of this machine; return the problem, or None."""
    import httpx  # noqa: PLC0415

    from service.settings import Settings as ServiceSettings  # noqa: PLC0415

    settings = ServiceSettings()
    url = f"{own_url(settings)}/{checked.value}z"
    # The connection stays on this machine, whose name the certificate need not contain; it uses no
    # proxy.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        if settings.tls_client_ca is not None and settings.tls_certificate is not None:
            context.load_cert_chain(settings.tls_certificate, settings.tls_key)
        answer = httpx.get(url, timeout=timeout_seconds, verify=context, trust_env=False)
    except (httpx.HTTPError, OSError) as error:
        return f"{url} does not answer: {error}"
    return None if answer.is_success else f"{url} answers {answer.status_code}: {answer.text}"


def own_url(settings: ServiceSettings) -> str:
    """Return the URL at which the service of this machine answers."""
    scheme = "http" if settings.tls_certificate is None else "https"
    host = settings.host.strip("[]")
    try:
        address = ip_address(host)
    except ValueError:
        return f"{scheme}://{host}:{settings.port}"
    is_v6 = isinstance(address, IPv6Address)
    if address.is_unspecified:
        address = ip_address("::1" if is_v6 else "127.0.0.1")
    return f"{scheme}://{f'[{address}]' if is_v6 else address}:{settings.port}"
