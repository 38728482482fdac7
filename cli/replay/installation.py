"""A temporary installation for one replay, with its own topics."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Self

import orjson
from pydantic import ValidationError

from cli.client.events import EventSender
from cli.errors import BrokerError, UsageError
from correlation.engine.heartbeats import CLOSED, Heartbeat, heartbeat_to_record
from correlation.resources.records import Resource, stream_to_document
from service.errors import ServiceError
from service.settings import Settings as ServiceSettings
from service.topics import TopicKeeper

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

    from cli.replay.setup import Setup
    from cli.replay.spans import Spans
    from cli.settings import Settings
    from correlation.resources.topics import Topics

_TOKEN_BYTES = 4


class Installation:
    """Topics of a replay; deleted at its end unless `keep` is set.

    Parameters
    ----------
    settings
        Broker address, and the prefix to which that of the replay is appended.
    console
        Console for messages.
    keep
        Whether the topics are kept.

    Raises
    ------
    UsageError
        The prefix is too long to be extended, or another setting of the service is not valid.
    """

    def __init__(self, settings: Settings, console: Console, *, keep: bool) -> None:
        self.prefix = f"{settings.prefix}-replay-{secrets.token_hex(_TOKEN_BYTES)}"
        self.settings = settings.model_copy(update={"prefix": self.prefix})
        self._console = console
        self._keep = keep
        try:
            service = ServiceSettings(bootstrap=settings.bootstrap, prefix=self.prefix)
        except ValidationError as error:
            found = error.errors()[0]
            raise UsageError(f"COINCIDE_{str(found['loc'][0]).upper()}: {found['msg']}") from error
        self._keeper = TopicKeeper(service)

    @property
    def topics(self) -> Topics:
        """Names of the topics of the replay."""
        return self.settings.topics

    def register(self, setup: Setup) -> None:
        """Write streams and conditions to the config topic, as the service does.

        Raises
        ------
        BrokerError
            The broker does not accept the records.
        """
        streams = [
            Resource("stream", name, 1, 0, stream_to_document(stream))
            for name, stream in setup.streams.items()
        ]
        records = [(it.key, orjson.dumps(it.to_record())) for it in (*streams, *setup.conditions)]
        self._send(self.topics.config, records)

    def close_streams(self, spans: Spans) -> None:
        """Close each partition of the streams at the end of its offset range.

        Parameters
        ----------
        spans
            Offset range of each partition.

        Raises
        ------
        BrokerError
            The broker does not accept the heartbeats.
        """
        heartbeats = [
            Heartbeat(stream, number, CLOSED, span.end)
            for stream, partitions in spans.items()
            for number, span in partitions.items()
        ]
        records = [(it.stream.encode(), orjson.dumps(heartbeat_to_record(it))) for it in heartbeats]
        self._send(self.topics.heartbeats, records)

    def _send(self, topic: str, records: list[tuple[bytes, bytes]]) -> None:
        sender = EventSender(self.settings)
        for key, value in records:
            sender.send(topic, key, value)
        delivery = sender.finish()
        if delivery.failed:
            raise BrokerError(f"{topic} could not be written: {delivery.first_error}")

    def __enter__(self) -> Self:
        try:
            self._keeper.ensure_own()
        except ServiceError as error:
            self._delete()
            raise BrokerError(f"the topics of the replay could not be made: {error}") from error
        except BaseException:
            self._delete()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keep:
            self._console.print(f"the topics of this replay stay: {self.prefix}.*", markup=False)
        else:
            self._delete()

    def _delete(self) -> None:
        """Delete the topics; a failure is only printed, because the results are not lost."""
        try:
            self._keeper.delete_own()
        except ServiceError as error:
            self._console.print(
                f"the topics {self.prefix}.* could not be deleted: {error}", markup=False
            )
