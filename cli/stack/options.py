"""Options of the local stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StackOptions:
    """Options of the local stack.

    Parameters
    ----------
    data
        Folder of the broker's data, the checkpoint and the logs; None: a temporary folder.
    bootstrap
        Address of an external broker; None: the embedded broker is started.
    broker_port, service_port
        Ports to listen on; 0: a free port.
    environment
        Environment variables of service and job in addition to those of this process.
    job_options
        Options of the command `job`.
    """

    data: Path | None
    bootstrap: str | None = None
    broker_port: int = 9092
    service_port: int = 8080
    environment: Mapping[str, str] = field(default_factory=dict)
    job_options: tuple[str, ...] = ()
