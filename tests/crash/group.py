"""Runs of the crash matrix in one installation: fault, recovery, and in the end the verdict."""

from __future__ import annotations

import json
import signal
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from cli.errors import CliError
from tests.crash.conditions import CONDITIONS, self_condition
from tests.crash.faults import Fault, Moment, Victim, Way, is_on_cluster
from tests.crash.installation import Installation
from tests.crash.judge import Verdict, judge
from tests.crash.load import SPARE, STREAMS, Load, make_stream
from tests.support.command import command_line, is_python_worker, send_signal
from tests.support.kafka import Sent, produce
from tests.support.patience import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from correlation.resources.records import Document
    from tests.crash.moments import Seen

# A moment of a batch is aimed at again in further batches.
_ATTEMPTS = 4
_POLL_SECONDS = 0.001
_FROZEN_SECONDS = 15.0
_DELAY_SECONDS = 0.05
_BYTES_PER_SECOND = 20_000
# Streams that are registered later; with more, the oldest is removed.
_MAX_FURTHER = 1


class Run(NamedTuple):
    """A fault, the moment at which it really hit the job, and the recovery."""

    fault: Fault
    hit: Moment
    seconds: float
    restarts: int


class Group:
    """The runs of one installation.

    Parameters
    ----------
    on
        The installation.
    """

    def __init__(self, on: Installation[Load]) -> None:
        self._on = on
        self._conditions: dict[str, Document] = {}
        self._further: list[str] = []
        # Processes that hold the job at a moment, until the victim is hit.
        self._frozen: list[int] = []
        self._pace = threading.Event()

    def prepare(self) -> None:
        """Register streams and conditions, and start the job."""
        for name in (*STREAMS, SPARE):
            self._on.add_stream(name)
        for name, document in CONDITIONS.items():
            self._register(name, document)
        self._on.job.start()
        self._on.load.resume()

    def crash(self, fault: Fault) -> Run:
        """Hit the installation, wait until it has recovered, and return the run."""
        on = self._on
        on.load.pause()
        on.wait_until_consumed()
        on.observer.begin()
        seen = self._wait_for(fault)
        begin, restarts = time.monotonic(), on.restarts
        fault, seen = self._strike(fault, seen)
        hit = on.observer.moment(seen)
        self._thaw()
        on.load.resume()
        # Some bursts are sent after the fault, whether the job has started again or not.
        self._pace.wait(1.0)
        on.supervise()
        on.load.pause()
        on.load.send_densely()
        on.wait_until_consumed()
        on.wait_for_ends()
        on.load.begin_late()
        run = Run(fault, hit, time.monotonic() - begin, on.restarts - restarts)
        on.load.resume()
        return run

    def verdict(self) -> Verdict:
        """Close all streams, and compare the results with the expected ones."""
        on = self._on
        on.load.pause()
        on.load.end()
        on.load.send_spare()
        on.wait_until_consumed()
        ends = [{"v": 1, "stream": name, "read_up_to": "end"} for name in on.load.sent]
        topic = on.job.topics.heartbeats
        places = produce(on.job.bootstrap, topic, [Sent(json.dumps(it).encode()) for it in ends])
        on.wait_until_read(topic, places[-1][1] + 1)
        registered = {name: it for name, it in on.consumed().items() if name in on.job.streams}
        return judge(on.job, on.streams, on.load.sent, self._conditions, registered, on.load.late)

    def _register(self, name: str, document: Document) -> None:
        self._conditions[name] = document
        self._on.register("conditions", name, document)

    # Moments

    def _wait_for(self, fault: Fault) -> Seen:
        """Bring the job to the moment of a fault, or as close as possible."""
        if fault.moment is Moment.RESTARTING:
            self._change_streams(fault)
            return self._wait_for_long(fault)
        if fault.moment is Moment.REBUILDING:
            self._on.lose_checkpoint()
            return self._wait_for_long(fault)
        if fault.moment is Moment.IDLE:
            return self._look_until(fault, PATIENCE_SECONDS) or self._on.observer.look()
        if fault.moment is Moment.AFTER_TRANSACTION:
            self._look_until(fault._replace(moment=Moment.IDLE), 1.0)
            # Spark ends a batch with a call in these processes, after the tasks have written.
            self._frozen = self._on.hold_commits()
        for _ in range(_ATTEMPTS):
            self._on.load.send_densely()
            seen = self._wait_in_batch(fault)
            if seen is not None:
                return seen
            self._on.wait_until_consumed()
        self._on.load.send_densely()
        return self._look_until(fault, 1.0) or self._on.observer.look()

    def _wait_in_batch(self, fault: Fault) -> Seen | None:
        """Return what is seen at the moment of a batch; None: all events were consumed before."""
        on = self._on
        streams = on.load.sent.keys() & on.job.streams.keys()
        begin = time.monotonic()
        while time.monotonic() < begin + PATIENCE_SECONDS:
            seen = self._look_until(fault, 0.5)
            if seen is not None:
                return seen
            on.supervise()
            if time.monotonic() > begin + _FROZEN_SECONDS:
                # The batch was held before its transactions were seen.
                self._thaw()
            found = on.consumed()
            if all(found.get(it, 0) >= on.load.count(it) for it in streams):
                return None
        return None

    def _thaw(self) -> None:
        """Let the processes continue that hold the job."""
        for pid in self._frozen:
            send_signal(pid, signal.SIGCONT)
        self._frozen = []

    def _look_until(self, fault: Fault, seconds: float) -> Seen | None:
        """Return what is seen at the moment of a fault; None if it does not come in time."""
        observer, deadline = self._on.observer, time.monotonic() + seconds
        asks = fault.moment is not Moment.BEFORE_STATE
        waits = fault.moment is Moment.BEFORE_STATE
        while time.monotonic() < deadline:
            seen = observer.look(ask=asks)
            if observer.moment(seen) is fault.moment:
                if not waits:
                    return seen
                # Anywhere between the begin of a batch and its first state.
                waits = False
                self._pace.wait(fault.delay_seconds / 10)
                continue
            self._pace.wait(_POLL_SECONDS)
        return None

    def _wait_for_long(self, fault: Fault) -> Seen:
        """Wait for the begin of a restart or rebuild, then for a time within it."""
        observer, deadline = self._on.observer, time.monotonic() + PATIENCE_SECONDS
        while observer.moment(seen := observer.look(ask=False)) is not fault.moment:
            assert time.monotonic() < deadline, f"{fault.moment} does not begin"
            self._on.supervise()
            self._pace.wait(_POLL_SECONDS)
        # A restart of the query is shorter than a rebuild.
        share = 0.1 if fault.moment is Moment.RESTARTING else 1
        end = time.monotonic() + share * fault.delay_seconds
        while time.monotonic() < end and observer.moment(seen) is fault.moment:
            self._pace.wait(_POLL_SECONDS)
            seen = observer.look(ask=False)
        return seen

    def _change_streams(self, fault: Fault) -> None:
        """Register a stream and a condition, or remove the oldest of them."""
        on = self._on
        if len(self._further) < _MAX_FURTHER:
            name = f"s{fault.seed}"
            # The condition waits for its stream; together they cause one restart.
            self._conditions[f"of-{name}"] = self_condition(name)
            self._further.append(name)
            on.add_stream(name)
            on.register("conditions", f"of-{name}", self._conditions[f"of-{name}"])
            on.load.add_stream(name)
            return
        name = self._further.pop(0)
        on.load.leave_out(name)
        on.remove_stream(name, f"of-{name}")

    # Faults

    def _strike(self, fault: Fault, seen: Seen) -> tuple[Fault, Seen]:
        """Hit the victim; return the fault as it was, and what was seen at that moment."""
        on = self._on
        if fault.victim is Victim.CONNECTION:
            self._disturb(fault)
            return fault, seen
        if fault.victim is Victim.SERVICE:
            self._strike_service(fault)
            return fault, seen
        if fault.victim is Victim.CHECKPOINT:
            on.lose_checkpoint(kills=True)
            return fault, seen
        pid = self._find(fault)
        if pid is None:
            # The job has no such process at this moment: its driver is hit instead.
            return self._strike(fault._replace(victim=Victim.DRIVER), seen)
        on.note_processes()
        if fault.way is Way.STOP:
            self._stop(pid, fault.seconds)
        elif fault.victim is Victim.BROKER:
            on.broker.kill()
            self._pace.wait(fault.seconds)
        else:
            if fault.victim is Victim.WORKER:
                on.note_orphans(pid)
            send_signal(pid, signal.SIGKILL)
            if fault.victim is Victim.JVM:
                # The files and topics are now as the JVM has left them.
                return fault, on.observer.look()
        return fault, seen

    def _find(self, fault: Fault) -> int | None:
        """Return the process of a fault; None: it does not exist now."""
        on, victim = self._on, fault.victim
        found: list[int | None]
        if victim is Victim.BROKER:
            found = [] if on.broker.process is None else [on.broker.process.pid]
        elif victim is Victim.DRIVER:
            # `spark-submit` starts the driver after a while.
            found = [*on.drivers()] or [on.job.process.pid]
        elif victim is Victim.JVM:
            found = [*filter(_is_java, on.processes())]
        elif victim is Victim.EXECUTOR:
            found = [*on.executors()]
        elif victim is Victim.WORKER:
            found = [*filter(is_python_worker, on.processes())]
        else:
            assert on.cluster is not None
            of_cluster = (
                on.cluster.workers if victim is Victim.SPARK_WORKER else [on.cluster.master]
            )
            found = [it.pid for it in of_cluster if it.running]
        return found[fault.choice % len(found)] if found else None

    def _stop(self, pid: int, seconds: float) -> None:
        send_signal(pid, signal.SIGSTOP)
        self._pace.wait(seconds)
        send_signal(pid, signal.SIGCONT)

    def _disturb(self, fault: Fault) -> None:
        """Cut, delay or throttle the connections between job and broker for a time."""
        proxy = self._on.proxy
        if fault.way is Way.CUT:
            proxy.cut()
        elif fault.way is Way.DELAY:
            proxy.delay(_DELAY_SECONDS)
        else:
            proxy.throttle(_BYTES_PER_SECOND)
        self._on.load.resume()
        self._pace.wait(fault.seconds)
        proxy.restore()

    def _strike_service(self, fault: Fault) -> None:
        """Hit the service while a condition is sent to it; afterwards it must be registered."""
        on = self._on
        name = f"spare-{fault.seed}"
        document = self_condition(SPARE, 1_000 + fault.choice)

        def send() -> None:
            # Sent again below.
            with suppress(CliError):
                on.client.put(f"/v1/conditions/{name}", document)

        sending = threading.Thread(target=send)
        sending.start()
        self._pace.wait(fault.delay_seconds / 100)
        pid = on.service.pid
        if fault.way is Way.STOP and pid is not None:
            self._stop(pid, fault.seconds)
        else:
            on.service.kill()
        sending.join()
        self._register(name, document)


def _is_java(pid: int) -> bool:
    """Return whether a process is the JVM of the driver; without a cluster it runs tasks, too."""
    return "org.apache.spark.deploy.SparkSubmit" in command_line(pid)


def run_group(
    folder: Path,
    faults: Sequence[Fault],
    runs: list[Run],
    say: Callable[[str], None] = lambda _: None,
    patience_seconds: float = PATIENCE_SECONDS,
) -> Verdict:
    """Hit one installation with faults; return the verdict over all events.

    Parameters
    ----------
    folder
        Folder of data, checkpoint and logs.
    faults
        The faults, in order.
    runs
        Receives each run after which the installation has recovered.
    say
        Receives a line per run.
    patience_seconds
        Max time for a recovery.

    Raises
    ------
    NotRecoveredError
        The installation does not recover from a fault.
    ValueError
        Some of the seeds need a cluster, and others do not.
    """
    (on_cluster,) = {is_on_cluster(it.seed) for it in faults}
    make_load = partial(Load, seed=faults[0].seed)
    with Installation(
        folder, make_load, make_stream, patience_seconds, on_cluster=on_cluster
    ) as on:
        group = Group(on)
        group.prepare()
        for fault in faults:
            run = group.crash(fault)
            runs.append(run)
            say(f"{fault}: hit {run.hit}, recovered in {run.seconds:.1f} s")
        return group.verdict()
