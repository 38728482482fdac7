"""Options of the local stack."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class StackOptions:
    """What the local stack is to be like.

    Parameters
    ----------
    data
        Folder of the broker's data, the checkpoint and the logs; a temporary one when None.
    bootstrap
        A broker of the user's own; the embedded one is started when None.
    broker_port, service_port
        Ports to listen on; 0 takes a free one.
    jars
        Folder of the Java archives; that of the settings when None.
    environment
        Settings of service and job in addition to this process's own.
    """

    data: Path | None
    bootstrap: str | None = None
    broker_port: int = 9092
    service_port: int = 8080
    jars: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
