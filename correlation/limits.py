"""The ranges inside which every computation is exact.

With them all sums of times fit int64, and the exact decision of timing.exact fits 128 bits
(docs/proofs.md, P-EXACT).
"""

from __future__ import annotations

# 36,000 years either side of 1970.
TIME_LIMIT_US = 2**60
# 407 days: the longest uncertainty of one event.
LENGTH_LIMIT_US = 2**45
# 35 years: windows, horizons and delays.
DURATION_LIMIT_US = 2**50
# Decimal places of a confidence threshold.
THRESHOLD_PLACES = 10
# Watermark of a stream of which nothing is known yet: further back than any time.
UNKNOWN_WATERMARK = -(2**62)
# Keep value of a buffer that no condition needs: later than any time.
KEEP_NOTHING = 2**62
# Decimal places of the masses of a histogram's buckets.
MASS_PLACES = 10
# Buckets of a histogram: a hundred percentiles fit. An exact decision then takes at most 200 steps,
# an s-window at most 20,402 pieces, and the float64 filter leaves less than 2**-43 in doubt.
BUCKET_LIMIT = 100
# Templates of a stream. Its record on Kafka holds them: 50 bytes a bucket, 7 MB at most. The
# s-windows of two such streams take some ten seconds, and 16 MB.
TEMPLATE_LIMIT = 1000
# Longest record of the config topic.
CONFIG_RECORD_BYTES = 16 * 1024 * 1024
# Most events of a block.
BLOCK_SIZE_LIMIT = 1_000_000
# Slots of a job.
SLOTS_LIMIT = 1024
# Groups of a grid: 44 make 990 cells, so that each can have a slot of its own; 45 would make 1,035.
GROUPS_LIMIT = 44
