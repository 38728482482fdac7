"""The command ``coincide rescale``."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cli.client.lines import counted, write_json_line
from cli.errors import RescaleError
from cli.settings import read_settings
from correlation.limits import SLOTS_LIMIT
from correlation.printable import printable

if TYPE_CHECKING:
    from cli.client.rest import ServiceClient

_ASK_SECONDS = 0.5


def rescale(
    *,
    slots: Annotated[int, typer.Option(help="Number of slots of the job.", min=1, max=SLOTS_LIMIT)],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the job runs with this number of slots.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(help="Max time of --wait, in seconds.", min=0.1)
    ] = 600.0,
    url: Annotated[
        str | None, typer.Option(help="URL of the service; default: COINCIDE_URL.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """Change the number of slots of the running job; it distributes its state by itself.

    Exit code 1 if the job does not run with this number when the time of --wait is over.
    """
    # Imported here: slow to import, and --help does not need it.
    from cli.client.rest import ServiceClient  # noqa: PLC0415

    progress = Console(stderr=True, highlight=False, soft_wrap=True)
    with ServiceClient.of(read_settings(url=url)) as service:
        service.put("/v1/job/slots", {"slots": slots})
        job = service.get("/v1/job")
        progress.print(_describe(job, slots))
        if wait:
            job = _wait(service, slots, timeout, progress)
    if as_json:
        names = ("slots", "wanted_slots", "slots_problem", "state")
        write_json_line({name: job[name] for name in names})


def _wait(
    service: ServiceClient, slots: int, timeout_seconds: float, progress: Console
) -> dict[str, Any]:
    """Wait until the job runs with a number of slots; return its state."""
    deadline = time.monotonic() + timeout_seconds
    problem = None
    while True:
        job = service.get("/v1/job")
        if _runs_with(job, slots):
            progress.print(f"the job runs with {counted(slots, 'slot')}")
            return job
        if job["slots_problem"] not in {problem, None}:
            problem = job["slots_problem"]
            progress.print(printable(f"the job tries again: {problem}"), markup=False)
        if time.monotonic() >= deadline:
            reason = problem or f"it has {job['slots']}, and its state is {job['state']}"
            if job["wanted_slots"] != slots:
                reason = f"another request has registered {job['wanted_slots']}"
            raise RescaleError(
                f"the job does not run with {counted(slots, 'slot')} after "
                f"{timeout_seconds:g} s: {reason}. It goes on trying; to keep its present number, "
                "set that with `coincide rescale`"
            )
        time.sleep(_ASK_SECONDS)


def _runs_with(job: dict[str, Any], slots: int) -> bool:
    return bool(job["up"]) and job["slots"] == slots == job["wanted_slots"]


def _describe(job: dict[str, Any], slots: int) -> str:
    """Return a sentence on what the job does about a number that was just registered."""
    wanted = counted(slots, "slot")
    if _runs_with(job, slots):
        return f"the job runs with {wanted} already"
    if job["slots"] is None or not job["up"]:
        return f"registered {wanted}: the job, which does not run now, takes them when it starts"
    return f"registered {wanted}: the job, which has {job['slots']}, distributes its state"
