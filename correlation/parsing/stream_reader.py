"""Reader of the records of a stream."""

from __future__ import annotations

from correlation.parsing.attribute_intake import AttributeIntake, AttributeReaders
from correlation.parsing.column_reader import compile_columns
from correlation.parsing.event_reader import compile_mapping
from correlation.parsing.intake import Intake
from correlation.resources.streams import Stream


class StreamReader:
    """Reader of the parsed records of a stream.

    Parameters
    ----------
    stream : Stream
        Stream with the mapping, the limits, the attributes, and the topic, from which missing ids
        are built.
    """

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.read = compile_mapping(stream)
        self._read_columns = compile_columns(stream)
        self._attributes = AttributeReaders(stream) if stream.attributes else None

    def begin(self, partition: int) -> Intake:
        """Return an empty intake for records of a partition of the stream's topic."""
        if self._attributes is None:
            return Intake(self.stream, self.read, self._read_columns, partition)
        return AttributeIntake(
            self.stream, self.read, self._read_columns, partition, self._attributes
        )
