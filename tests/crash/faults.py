"""Faults of the crash matrix: a victim, a moment, and how the victim is hit.

A seed determines a fault. Seeds from 1,000 on are those of a Spark standalone cluster, whose
executors, workers and master are processes of their own. The numbers of victims and of moments have
no common divisor, so that as many consecutive seeds as the matrix has cells aim at every cell once.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

# First seed of an installation on a cluster.
CLUSTER_SEED = 1_000
_LONGEST_SECONDS = 4.0
_LONGEST_DELAY_SECONDS = 3.0


class Victim(StrEnum):
    """Process or connection that is hit."""

    DRIVER = "driver"
    JVM = "JVM"
    WORKER = "Python worker"
    BROKER = "broker"
    SERVICE = "service"
    CONNECTION = "connection"
    EXECUTOR = "executor"
    SPARK_WORKER = "Spark worker"
    MASTER = "master"

    @property
    def needs_cluster(self) -> bool:
        """Whether the victim exists on a cluster only."""
        return self in {Victim.EXECUTOR, Victim.SPARK_WORKER, Victim.MASTER}


class Moment(StrEnum):
    """State of the job at which the victim is hit."""

    BEFORE_STATE = "before the state commit"
    AFTER_STATE = "after the state commit"
    IN_TRANSACTION = "in the transaction"
    AFTER_TRANSACTION = "before the commit log"
    IDLE = "idle"
    RESTARTING = "restarting for a stream"
    REBUILDING = "rebuilding"


class Way(StrEnum):
    """How a victim is hit."""

    KILL = "kill -9"
    STOP = "stop and continue"
    CUT = "cut"
    DELAY = "delay"
    THROTTLE = "throttle"


class Fault(NamedTuple):
    """A fault.

    Attributes
    ----------
    seed
        Seed that determines the fault.
    victim, moment, way
        What is hit, when, and how; the moment is an aim, which may be missed.
    seconds
        Time until a stopped victim continues, a cut connection is restored or a broker is started
        again.
    delay_seconds
        Max time between the begin of a long moment and the hit.
    choice
        Number that selects one of several processes.
    """

    seed: int
    victim: Victim
    moment: Moment
    way: Way
    seconds: float
    delay_seconds: float
    choice: int

    def __str__(self) -> str:
        """Describe the fault in one line."""
        return f"seed {self.seed}: {self.victim}, {self.moment}, {self.way} {self.seconds:.1f} s"


def is_on_cluster(seed: int) -> bool:
    """Return whether the installation of a seed runs on a Spark cluster."""
    return seed >= CLUSTER_SEED


def draw_fault(seed: int) -> Fault:
    """Return the fault of a seed."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
    victims = [it for it in Victim if is_on_cluster(seed) or not it.needs_cluster]
    moments = list(Moment)
    victim = victims[seed % len(victims)]
    ways = (
        (Way.CUT, Way.DELAY, Way.THROTTLE)
        if victim is Victim.CONNECTION
        else (Way.KILL, Way.KILL, Way.STOP)
    )
    return Fault(
        seed,
        victim,
        moments[seed % len(moments)],
        chance.choice(ways),
        chance.uniform(0.1, _LONGEST_SECONDS),
        chance.uniform(0, _LONGEST_DELAY_SECONDS),
        chance.randrange(1_000),
    )
