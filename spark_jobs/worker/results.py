"""Results as packed output records, with the topics to which they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

from correlation.reasons import Reason
from correlation.record_columns import columns_of
from correlation.resources.topics import refusal_headers
from spark_jobs.worker.envelope import pack_result

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from correlation.operators import Result
    from correlation.resources.topics import Topics


def pack_results(results: Iterable[Result], detected_at_us: int, topics: Topics) -> Iterator[bytes]:
    """Pack the records of results into blobs.

    Parameters
    ----------
    results : iterable of Result
        Results of a block.
    detected_at_us : int
        Time at which the correlation completed, in µs since 1970.
    topics : Topics
        Topics of the installation.
    """
    for result in results:
        heading = result.heading(detected_at_us)
        topic = heading.topic or topics.channel_topic(heading.channel)
        if heading.topic in topics.reserved():
            # The service refuses such a condition; alarms would look like records of the job.
            detail = "it is an internal topic of Coincide"
            refusal = refusal_headers(Reason.OUTPUT_REFUSED, detail, topic)
            headers = {name: value.decode() for name, value in refusal.items()}
            heading = heading._replace(headers=heading.headers | headers)
            topic = topics.dead_letter
        yield from pack_result(topic, heading, columns_of(result, detected_at_us, orjson.dumps))
