"""The job on a host whose clock a test sets: `python -m tests.support.shifted_job FILE`.

The file has the difference to the true time, in µs. Kafka's clock and those of the Python workers
are true.
"""

from __future__ import annotations

import sys
from pathlib import Path

from spark_jobs import main as job


def main(file: Path) -> int:
    """Run the job."""
    true_us = job.wall_clock_us

    def shifted_us() -> int:
        return true_us() + int(file.read_text())

    job.wall_clock_us = shifted_us
    return job.main()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
