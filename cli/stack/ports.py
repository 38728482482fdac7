"""Checks that the ports of the local stack are free, before anything is started or written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.errors import BrokerError, ServiceError
from cli.stack.broker import HOST
from service.ports import find_port_problem
from service.settings import Settings as ServiceSettings

if TYPE_CHECKING:
    from cli.stack.options import StackOptions


def check_ports(options: StackOptions) -> None:
    """Check that the broker and the service can listen on their ports; 0 is not checked.

    Parameters
    ----------
    options
        Options of the local stack.

    Raises
    ------
    BrokerError, ServiceError
        A port is in use or cannot be used; the message names the option for another port.
    """
    broker = options.broker_port if options.bootstrap is None else 0
    if broker and (problem := find_port_problem(HOST, broker)):
        raise BrokerError(
            f"{problem}; use another port with --broker-port, or use the Kafka at this port "
            f"with --bootstrap {HOST}:{broker}"
        )
    service, host = options.service_port, ServiceSettings().host
    if service and service == broker:
        raise ServiceError(
            f"port {service} is set for both broker and service; use another port with --port"
        )
    if service and (problem := find_port_problem(host, service)):
        raise ServiceError(
            f"{problem}; use another port with --port or COINCIDE_PORT, or another address of "
            "this machine with COINCIDE_HOST"
        )
