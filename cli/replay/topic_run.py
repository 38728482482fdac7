"""Replay of topics: evaluate conditions over the present records of their streams' topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.progress import MofNCompleteColumn, TimeRemainingColumn

from cli.client.topics import connected
from cli.progress_bar import make_progress
from cli.replay.run import run_inputs
from cli.replay.setup import read_topic_setup
from cli.replay.topic_reader import TopicReader
from kafka_client.topic_offsets import KafkaOffsets

if TYPE_CHECKING:
    from rich.console import Console

    from cli.replay.options import ReplayOptions
    from cli.settings import Settings


def run_topic_replay(
    settings: Settings, options: ReplayOptions, console: Console
) -> dict[str, Any]:
    """Run conditions over topics and write their alarms.

    Parameters
    ----------
    settings
        Broker address.
    options
        Options of the replay.
    console
        Console for the progress bar.

    Returns
    -------
    dict
        The report; see `cli.replay.report.summarise`.

    Raises
    ------
    CliError
        A stream or condition is not valid, a topic does not exist or is deleted meanwhile, the
        broker does not answer, or a file cannot be written.
    """
    with connected(settings, KafkaOffsets) as offsets:
        reader = TopicReader(settings, offsets)
        setup = read_topic_setup(options.resources, options.conditions, reader.count_partitions)
        partitions = reader.find_partitions(setup.streams.values())
        progress = make_progress(console, MofNCompleteColumn(), TimeRemainingColumn())
        return run_inputs(setup, options, partitions, reader.read_chunks, progress)
