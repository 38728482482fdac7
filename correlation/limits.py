"""Limits of the values, within which every computation is exact.

Within them all sums of times fit int64, and the exact decision of timing.exact fits 128 bits
(docs/proofs.md, P-EXACT).
"""

from __future__ import annotations

# Times: 36,000 years before and after 1970.
TIME_LIMIT_US = 2**60
# Maximum uncertainty of an event: 407 days.
LENGTH_LIMIT_US = 2**45
# Maximum of windows, horizons and delays: 35 years.
DURATION_LIMIT_US = 2**50
# Maximum number of decimal places of a confidence threshold.
THRESHOLD_PLACES = 10
# Maximum absolute value of a decimal in a document; decimals have at most THRESHOLD_PLACES places.
DECIMAL_LIMIT = 10**15
# Watermark of a stream without events and heartbeats: earlier than any time.
UNKNOWN_WATERMARK = -(2**62)
# Keep value of a buffer that no condition needs: later than any time.
KEEP_NOTHING = 2**62
# Maximum number of decimal places of the masses of a histogram's buckets.
MASS_PLACES = 10
# Maximum number of buckets of a histogram; 100 percentiles fit. An exact decision takes at most 200
# steps, an s-window has at most 20,402 pieces, and the float64 filter leaves a range of less than
# 2**-43 undecided.
BUCKET_LIMIT = 100
# Maximum number of templates of a stream. The stream's record holds them: 50 bytes per bucket, at
# most 7 MB. Computing the s-windows of two such streams takes about 10 seconds and 16 MB.
TEMPLATE_LIMIT = 1000
# Maximum size of a record of the config topic.
CONFIG_RECORD_BYTES = 16 * 1024 * 1024
# Maximum number of events of a block.
BLOCK_SIZE_LIMIT = 1_000_000
# Maximum of `max_pairs`.
PAIRS_LIMIT = 1_000_000_000
# Maximum number of slots of a job.
SLOTS_LIMIT = 1024
# Maximum number of groups of a grid: 44 groups have 990 cells, at most one per slot; 45 have 1,035.
GROUPS_LIMIT = 44
# Maximum number of constants of a filter over attributes.
FILTER_CONSTANTS_LIMIT = 1000
