"""The running example as Spark's own left outer join and a filter, the baseline of `tsa.path`.

A smoke is joined with the reports of its area within the deadline; a filter keeps the smokes that
have no report. Spark streams have no anti join, so this is how its documentation detects an event
that is missing. Spark writes a smoke without a report when its watermark, the minimum of both
streams, has passed the deadline: in a batch after the one that read the events.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - Spark's own habit
from pyspark.sql.types import LongType, StringType, StructField, StructType

from benchmarks.spark_join import open_baseline, read_events, write_until_stopped
from spark_jobs.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_EVENT = StructType(
    [
        StructField("id", StringType()),
        StructField("area", StringType()),
        StructField("latest", LongType()),
    ]
)


def unreported(smokes: DataFrame, reports: DataFrame, deadline_us: int) -> DataFrame:
    """Return the smokes without a report of their area within the deadline."""
    near = F.expr(
        "r.area = s.area AND r.moment >= s.moment "
        f"AND r.moment <= s.moment + INTERVAL {deadline_us} MICROSECONDS"
    )
    joined = smokes.alias("s").join(reports.alias("r"), near, "leftOuter")
    return joined.where("r.id IS NULL").select(
        F.col("s.id").alias("key"),
        F.to_json(F.struct("s.id", "s.area", "s.latest")).alias("value"),
    )


def main(smoke: str, report: str, output: str, deadline_us: str, delay_us: str) -> None:
    """Run the query until the process is stopped."""
    settings = Settings()
    session = open_baseline(settings)
    delay = f"{int(delay_us) // 1_000} milliseconds"
    found = unreported(
        read_events(session, settings, smoke, delay, _EVENT),
        read_events(session, settings, report, delay, _EVENT),
        int(deadline_us),
    )
    write_until_stopped(found, output, settings)


if __name__ == "__main__":
    main(*sys.argv[1:])
