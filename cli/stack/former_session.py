"""End the session of a broker that was killed, before the broker starts again.

The embedded node is broker and controller. After a kill, its controller takes the former broker for
alive until that one's session ends. The new broker meanwhile loads the partitions that it leads,
and with them the transactions, but does not accept connections yet. When the session ends, its
partitions have no leader for a moment. If a transaction was stored as committed, and its end was
not yet written to its partitions, Kafka takes these for deleted and skips them
(TransactionMarkerChannelManager of Kafka 4.3): the client has the answer that the transaction is
committed, and consumers never receive it.

The controller is therefore started alone first, until the session has ended. The broker then
registers at once, and leads its partitions when it can be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.stack.processes import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# Limits that end a hang.
_END_SECONDS = 600
_STOP_SECONDS = 60
# The log of the metadata, and the file that a broker leaves when it has ended by itself.
_METADATA, _CLEAN = "__cluster_metadata-0", ".kafka_cleanshutdown"
# The controller logs this when a session has ended.
_ENDED = "Fencing broker"
# The controller writes to the log of the metadata every half a second. If it has written so often,
# the broker had no session: it was killed before it registered.
_WRITES = 20
_ALONE = {
    "process.roles": "controller",
    "broker.session.timeout.ms": "1000",
    "broker.heartbeat.interval.ms": "500",
}
_OF_BROKERS = ("listeners", "advertised.listeners", "inter.broker.listener.name")


def was_killed(data: Path) -> bool:
    """Return whether the node with a folder of data did not end by itself."""
    return (data / _METADATA).is_dir() and not (data / _CLEAN).exists()


def end_session(command: Sequence[str], properties: Path, data: Path) -> None:
    """Run the controller until the session of the former broker has ended.

    Parameters
    ----------
    command
        Command that starts a node, without its properties.
    properties
        Properties of the node; those of the controller are written beside them.
    data
        Folder of the node's data.

    Raises
    ------
    ProcessError
        The controller ended or was not ready; the message has the end of its log.
    """
    alone = properties.with_name("controller.properties")
    lines = properties.read_text(encoding="utf-8").splitlines()
    # The last value of a property counts, as in Java.
    found = dict(it.split("=", 1) for it in lines if "=" in it and not it.startswith("#"))
    _, _, place = found["controller.quorum.voters"].partition("@")
    kept = {name: it for name, it in found.items() if name not in _OF_BROKERS}
    own = {**kept, **_ALONE, "listeners": f"CONTROLLER://{place}"}
    alone.write_text("".join(f"{name}={it}\n" for name, it in own.items()), encoding="utf-8")
    log = properties.with_name("controller.log")
    log.unlink(missing_ok=True)
    process = ChildProcess("controller", [*command, str(alone)], log)
    progress = _Progress(data / _METADATA, log)
    process.start()
    try:
        process.wait_until(progress.is_over, _END_SECONDS)
    finally:
        process.stop(_STOP_SECONDS)


class _Progress:
    """Whether the session has ended, and the controller has written it to the log."""

    def __init__(self, metadata: Path, log: Path) -> None:
        self._metadata, self._log = metadata, log
        self._size = self._writes = 0
        # Number of writes when the session had ended.
        self._ended: int | None = None

    def is_over(self) -> bool:
        """Look at the logs."""
        size = sum(it.stat().st_size for it in self._metadata.glob("*.log"))
        self._writes += size != self._size
        self._size = size
        if self._ended is None and _ENDED in self._log.read_text(encoding="utf-8"):
            self._ended = self._writes
        return self._writes > (_WRITES if self._ended is None else self._ended)
