"""Entry point of the job: `python -m spark_jobs.main`, or this file for spark-submit.

Without options the job continues with its checkpoint. With --rebuild, --from-now or
--from-beginning this start replaces the query of the checkpoint, as if the checkpoint were empty
and COINCIDE_WITHOUT_CHECKPOINT had the value rebuild, now or beginning.
"""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaException
from py4j.protocol import Py4JError, Py4JJavaError
from pydantic import ValidationError
from pyspark.errors import PySparkException

from correlation.errors import CorrelationError
from kafka_client.allocator import use_one_arena
from kafka_client.connection import explain_silence
from kafka_client.rights import no_right
from kafka_client.secrets import HidingFormatter
from kafka_client.settings import describe as describe_settings
from kafka_client.topic_offsets import KafkaOffsets
from kafka_client.users import user_of
from spark_jobs.driver.checkpoint import Checkpoint
from spark_jobs.driver.claim import Claim
from spark_jobs.driver.config_topic import ConfigTopic
from spark_jobs.driver.config_watch import ConfigWatch
from spark_jobs.driver.event_topics import check_topics
from spark_jobs.driver.layout import is_outdated, new_id, open_layout
from spark_jobs.driver.memory import MemoryUse
from spark_jobs.driver.parts import Parts
from spark_jobs.driver.planning import prepare_layout, replace_query
from spark_jobs.driver.rebuild import Plan, find_ranges, read_plan
from spark_jobs.driver.reports import Reporter, describe
from spark_jobs.driver.rights import warn_of_wide_folder
from spark_jobs.driver.rivals import refuse_rivals
from spark_jobs.driver.session import max_tasks, open_session
from spark_jobs.driver.stale_checkpoint import check_checkpoint, check_copy
from spark_jobs.driver.streams_in_force import streams_in_force
from spark_jobs.errors import ClaimLostError, RivalJobError, SettingError, SparkJobError
from spark_jobs.job import Job
from spark_jobs.settings import Settings
from spark_jobs.sink.marker import read_marks
from spark_jobs.sink.options import SinkOptions
from spark_jobs.sink.ownership import claims_of
from spark_jobs.sink.state_topic import read_decided_state
from spark_jobs.worker.worker_daemon import WARM_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType

    from pyspark.sql import SparkSession

    from correlation.resources.topics import Topics
    from spark_jobs.settings import Properties, WithoutCheckpoint

_log = logging.getLogger("spark_jobs")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_SAY_SECONDS = 10.0
_ASK_SECONDS = 0.5
# Max time for transactions to end that the claim has not ended, such as one of a restore that was
# killed: Kafka aborts it after 300 s, and looks for such transactions every 10 s.
_DECISION_SECONDS = 330.0
# Options of the job by the start that they order.
STARTS: Mapping[WithoutCheckpoint, str] = {
    "rebuild": "--rebuild",
    "now": "--from-now",
    "beginning": "--from-beginning",
}


def main(start: WithoutCheckpoint | None = None) -> int:
    """Run the job with the settings of the environment, until SIGTERM or SIGINT.

    Parameters
    ----------
    start : {"rebuild", "now", "beginning"} or None
        How this start replaces the query of the checkpoint; None: it continues with it.

    Returns
    -------
    int
        0 when the job was stopped or has read all records (`until_end`), 1 when it failed, 2 when
        a setting is not valid.
    """
    use_one_arena()
    logging.basicConfig(level=logging.INFO, format=_FORMAT)
    # py4j logs every connection that it closes.
    logging.getLogger("py4j").setLevel(logging.WARNING)
    try:
        settings = Settings()
    except ValidationError as error:
        for sentence in describe_settings(error, Settings):
            _log.error("%s", sentence)
        return 2
    for handler in logging.getLogger().handlers:
        handler.setFormatter(HidingFormatter(_FORMAT, settings.secrets))
    # Java and the workers inherit the umask.
    os.umask(int(settings.umask, 8))
    warn_of_wide_folder(settings.checkpoint, settings.umask)
    stop = threading.Event()
    return run(settings, stop, start)


def run(settings: Settings, stop: threading.Event, start: WithoutCheckpoint | None = None) -> int:
    """Run the job until `stop` is set or a signal arrives.

    Parameters
    ----------
    settings : Settings
        Settings of the job.
    stop : threading.Event
        Set by the caller, or by SIGTERM and SIGINT.
    start : {"rebuild", "now", "beginning"} or None
        See `main`.

    Returns
    -------
    int
        0 when the job was stopped or has read all records (`until_end`), 1 when it failed, 2 when
        Spark rejects a setting.
    """
    _stop_on_signals(stop)
    with ExitStack() as opened:
        topics = settings.topics
        offsets = opened.enter_context(
            closing(KafkaOffsets(settings.client, f"{settings.prefix}.job"))
        )
        # The audit topic is the service's alone.
        used = tuple(it for it in topics.all() if it != topics.audit)
        if not wait_for_topics(offsets, used, stop, settings.client):
            return 0
        reporter = opened.enter_context(
            closing(Reporter(settings.client, topics, wall_clock_us, settings.secrets.hide))
        )
        reporter.state("starting")
        try:
            _run_job(settings, stop, start, offsets, reporter, opened)
        except (Py4JError, ConnectionError) as error:
            # A signal to the whole process group ends Spark at once.
            if stop.is_set():
                _log.warning(
                    "Spark stopped before the job; the next start completes the running batch"
                )
                reporter.state("stopped")
                return 0
            # A Java exception proves that the JVM still runs.
            cause = "Spark failed" if isinstance(error, Py4JJavaError) else "Spark stopped"
            _log.error("the job ends: %s: %s", cause, error)
            reporter.state("failed", exception=describe(error))
            return 1
        except (SparkJobError, CorrelationError, KafkaException, PySparkException) as error:
            return _fail(error, reporter)
        reporter.state("stopped")
        _log.info("stopped")
    return 0


def _run_job(
    settings: Settings,
    stop: threading.Event,
    start: WithoutCheckpoint | None,
    offsets: KafkaOffsets,
    reporter: Reporter,
    opened: ExitStack,
) -> None:
    """Claim the installation, and run the job until it is stopped; `opened` closes its objects."""
    topics = settings.topics
    # Described before it is read: the next check then detects a topic recreated meanwhile.
    config = offsets.describe([topics.config]).get(topics.config)
    watch = opened.enter_context(ConfigWatch(settings.client, topics.config))
    watch.read_to_end()
    if settings.until_end:
        check_topics(watch.streams, offsets.partitions())
    # Workers keep the environment of the first query when conditions change.
    workers = {WARM_KINDS: ",".join(sorted(watch.kinds))} if watch.kinds else {}
    session = open_session(settings, workers)
    # Spark installs its own SIGINT handler when its context starts.
    _stop_on_signals(stop)
    opened.callback(_end_session, session)
    checkpoint = Checkpoint(session, settings.checkpoint)
    slots = watch.slots or settings.slots
    layout = open_layout(checkpoint, session, slots)
    if start is None and is_outdated(checkpoint):
        _log.warning("an earlier version wrote the checkpoint; the state is rebuilt from Kafka")
        start = "rebuild"
    refuse_rivals(settings.client, topics, layout.id, wall_clock_us, stop)
    if start is None:
        check_copy(checkpoint, layout, settings)
    else:
        # Stored when the query is replaced: copies of the checkpoint are then refused.
        layout = replace(layout, id=new_id())
    if stop.is_set():
        # A stopped job does not take the installation from a job that may run.
        return
    # The number of slots may change below.
    partitions = max(layout.shuffle_partitions, max_tasks(session, slots))
    owner = claims_of(topics, settings.client).claim(layout.id, partitions, wall_clock_us())
    reporter.state("starting", checkpoint=layout.id, claim=owner.number)
    # The claim has ended all transactions of earlier jobs.
    state = read_decided_state(settings.client, topics.state, _DECISION_SECONDS)
    marks = read_marks(state)
    written = -1
    find_written = partial(topics_with_results, offsets, topics)
    if start is None:
        written = check_checkpoint(checkpoint, layout, settings, owner, marks)
        layout = prepare_layout(checkpoint, session, layout, settings, state, slots, find_written)
    else:
        missing = partial(_missing, watch, offsets, settings)
        layout = replace_query(
            checkpoint, session, layout, settings, state, slots, start, missing, find_written
        )
    ahead = ""
    if (plan := read_plan(checkpoint)) is not None:
        # Imported late: it takes a second.
        from spark_jobs.sink.merged import write_kept  # noqa: PLC0415 - see above

        options = SinkOptions(settings.prefix, settings.client, owner, marks)
        former = {it.checkpoint for it in plan.slots if it is not None}
        ahead = write_kept(state, options, former, checkpoint.query_id())
        if plan.from_now:
            # Lists begin empty: the former shares do not belong to them.
            ahead = ""
    checkpoint.remove_other_queries()
    config_topic = ConfigTopic(
        checkpoint,
        topics.config,
        None if config is None else config.id,
        settings.accept_config_topic,
    )
    parts = Parts(
        settings,
        session,
        layout,
        checkpoint,
        config_topic,
        watch,
        offsets,
        reporter,
        Claim(topics, settings.client, owner),
        marks,
        ahead,
        written,
        MemoryUse(_java_process(session)),
        stop,
    )
    Job(parts).run()


def topics_with_results(offsets: KafkaOffsets, topics: Topics) -> set[str]:
    """Return the topics of results to which records were written, even if none is left.

    If the job has no right to read a topic, or Kafka does not answer in time, topics count if they
    have anything, though it may be what aborted transactions have left.
    """
    partitions = offsets.partitions()
    names = [topics.alarms, *map(topics.of, topics.channels)]
    places = [(name, number) for name in names for number in range(partitions.get(name, 0))]
    begins = offsets.begins(places)
    # Records of an aborted transaction move the end, too, but consumers never receive them.
    ends = offsets.ends(places)
    after = offsets.after_last_records(ends, begins)
    return {it[0] for it in places if after.get(it, ends.get(it)) or begins.get(it)}


def _missing(
    watch: ConfigWatch, offsets: KafkaOffsets, settings: Settings, plan: Plan
) -> Sequence[str]:
    """Return the problems of a plan whose buffered events cannot be read again."""
    found = offsets.describe({stream.topic for stream in watch.streams.values()})
    in_force = streams_in_force(watch.streams, found, settings.topics)
    return find_ranges(plan, in_force, offsets.begins(in_force.places))[1]


def _fail(error: Exception, reporter: Reporter) -> int:
    """Log and report the error that ends the job; return the exit code."""
    is_setting = isinstance(error, SettingError)
    _log.error("%s%s", "" if is_setting else "the job ends: ", error)
    # The state of the installation is that of the other job.
    if not isinstance(error, ClaimLostError | RivalJobError):
        reporter.state("failed", exception=describe(error))
    return 2 if is_setting else 1


def _java_process(session: SparkSession) -> int:
    """Return the id of the driver's Java process."""
    jvm: Any = session._jvm  # noqa: SLF001 - Spark's Python API does not know it
    return int(jvm.java.lang.ProcessHandle.current().pid())


def _end_session(session: SparkSession) -> None:
    with suppress(Py4JError, ConnectionError):
        session.stop()


def wait_for_topics(
    offsets: KafkaOffsets,
    needed: tuple[str, ...],
    stop: threading.Event,
    properties: Properties,
) -> bool:
    """Wait until the installation's topics exist; return False when stopped before.

    Parameters
    ----------
    offsets : KafkaOffsets
        Queries the broker.
    needed : tuple of str
        Names of the topics; the service creates them at its start.
    stop : threading.Event
        Ends the wait.
    properties : mapping
        librdkafka properties, to find out why the broker does not answer.
    """
    said_at = -_SAY_SECONDS
    while not stop.is_set():
        try:
            missing = sorted(set(needed) - set(offsets.partitions()))
            reason = (
                f"topics {', '.join(missing)} are missing, or "
                f"{no_right(user_of(properties), 'Describe')}; the service creates them"
            )
        except KafkaException as error:
            missing = list(needed)
            cause = explain_silence(properties) or error.args[0].str()
            reason = f"no broker answers ({cause}); check COINCIDE_BOOTSTRAP"
        if not missing:
            return True
        if time.monotonic() - said_at >= _SAY_SECONDS:
            said_at = time.monotonic()
            _log.warning("waiting: %s", reason)
        stop.wait(_ASK_SECONDS)
    return False


def wall_clock_us() -> int:
    """Return the wall time in µs since 1970."""
    return time.time_ns() // 1_000


def _stop_on_signals(stop: threading.Event) -> None:
    def on_signal(number: int, _: FrameType | None) -> None:
        _log.info("stopping: %s", signal.Signals(number).name)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)


def read_start(arguments: Sequence[str]) -> WithoutCheckpoint | None:
    """Return how a start with these arguments replaces the query of the checkpoint, or None.

    Raises
    ------
    SystemExit
        When an argument is not known, or two of the options are given.
    """
    parser = argparse.ArgumentParser(description="The streaming job of Coincide.")
    options = parser.add_mutually_exclusive_group()
    for start, option in STARTS.items():
        options.add_argument(option, dest="start", action="store_const", const=start)
    found: WithoutCheckpoint | None = parser.parse_args(arguments).start
    return found


if __name__ == "__main__":
    sys.exit(main(read_start(sys.argv[1:])))
