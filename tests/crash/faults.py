"""Faults of the crash matrix: a victim, a moment, and how the victim is hit.

A seed determines a fault. Seeds from 1,000 to 1,999 are those of a Spark standalone cluster, whose
executors, workers and master are processes of their own. With seeds from 2,000 on, the whole job is
killed and its checkpoint is removed. The numbers of victims and of moments have no common divisor,
so that as many consecutive seeds as the matrix has cells aim at every cell once.
"""

from __future__ import annotations

import random
from enum import StrEnum
from typing import NamedTuple

# First seed of an installation on a cluster.
CLUSTER_SEED = 1_000
# First seed of a run in which the job loses its checkpoint.
LOSS_SEED = 2_000
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
    CHECKPOINT = "job and checkpoint"

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
    LOSE = "kill -9 and remove"
    STOP = "stop and continue"
    CUT = "cut"
    DELAY = "delay"
    THROTTLE = "throttle"


_WAYS = {
    Victim.CONNECTION: (Way.CUT, Way.DELAY, Way.THROTTLE),
    Victim.CHECKPOINT: (Way.LOSE,),
}


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
    return CLUSTER_SEED <= seed < LOSS_SEED


def victims_of(seed: int) -> list[Victim]:
    """Return the victims of an installation with a seed."""
    if seed >= LOSS_SEED:
        return [Victim.CHECKPOINT]
    on_cluster = is_on_cluster(seed)
    return [
        it for it in Victim if it is not Victim.CHECKPOINT and (on_cluster or not it.needs_cluster)
    ]


def draw_fault(seed: int) -> Fault:
    """Return the fault of a seed."""
    chance = random.Random(seed)  # noqa: S311 - a reproducible choice, no secret
    victims = victims_of(seed)
    moments = list(Moment)
    victim = victims[seed % len(victims)]
    ways = _WAYS.get(victim, (Way.KILL, Way.KILL, Way.STOP))
    return Fault(
        seed,
        victim,
        moments[seed % len(moments)],
        chance.choice(ways),
        chance.uniform(0.1, _LONGEST_SECONDS),
        chance.uniform(0, _LONGEST_DELAY_SECONDS),
        chance.randrange(1_000),
    )
