"""Texts of the figures: the paper's claim, the result here, and the cause of a difference."""

FIGURE_3 = """\
**The paper's claim.** With the rate, the execution times of `simple` and `ssort` grow much faster
than those of `eager` and the lazy family, because regions spare most probabilities. `ssort` is
below `simple`, because obsolete events stand together and go together. The lazy family is below
`eager`, because it works in bulk.

**Here.** Lengths are uniform between 20 and 200 ms, delays up to 100 ms, blocks 1,000 events of a
stream. The paper does not say which deadline and threshold it used: here 500 ms and 0.8, those of
its Figure 6. Above 1,600 events/s events are spread over join keys of 1,600/s each. 1,000 ms per
second are one core: above that an algorithm does not keep up. `auto` and blocks of 0.25 s, like a
batch of the job, are not in the paper.

**What is seen.** The lazy family needs a small part of the time of the others, as claimed. Those
that take event by event lie close together, and the claimed order among them does not show.

**Why it differs.** They are called once an event, and a call from Python into a compiled kernel
costs as much as deciding a thousand pairs; the paper's Java had no such border to cross. The work
itself is as the paper says: see "what an event costs". `indexed` is slow because no two events have
the same length: it then pays a search for every pair, and `auto` leaves it alone. Blocks of 0.25 s
are nearly empty at low rates; at high ones they are so large that the memory for their pairs comes
fresh from the system each time, which can cost more than finding the pairs. With many keys and
blocks of 1,000 events, few events of a block share a key, and the cost of a key is not shared.
"""

FIGURE_4 = """\
**The paper's claim.** `eager` answers sooner than the lazy family, which lets events wait for their
block. Up to 400 events/s `simple` and `ssort` answer sooner too; where the processing cannot keep
up with the arrivals, the response time rises sharply.

**Here.** The response time of a pair is the completion of its correlation minus the later of its
two latest times. Arrivals are played in stream time, and the algorithm is a server that needs the
measured processor time. The delay of an event, 50 ms on average, is in every figure.

**What is seen.** By arrival, a pair is reported as soon as its later event is there. Blocks of a
fixed size make the response time fall in proportion to the rate, to below a second at the paper's
highest rates. Where Figure 3 shows more than 1,000 ms per second, the queue grows, and the mean
depends on the length of the run: read such a value as "without bound". At 160,000/s that is all but
the blocks of 0.25 s.

**Why it differs.** In the paper `simple` and `ssort` fall behind above 400 events/s; a core of
today does not at 1,600. Far beyond the paper the lazy family, which needs least, falls behind last:
its blocks are full at once. Blocks of 0.25 s have no long wait at low rates; that is why a batch of
the job is cut by time.
"""

FIGURE_5 = """\
**The paper's claim.** `eager` holds the fewest events. `ssort` holds fewer than `simple`. The lazy
family holds about a block (1,000 events) more, with and without the look-up table.

**Here.** Events that wait for their block are counted, and so are obsolete ones that are not yet
removed. All use the same keep values.

**What is seen.** The same order. `ssort` and `eager` share one sorted buffer and hold the same.
`simple` holds a few more: an obsolete event stays while one that is needed stands before it.

**Why it differs.** The lazy family holds half a block more, not a whole one: a block fills from
nothing to 1,000, and the mean is counted. At high rates it holds a part of the buffer more: stored
segments are rewritten when half of their events are obsolete, not event by event.
"""

COSTS = """\
The paper explains Figure 3 by the probabilities that regions spare. All columns are a mean of one
arriving event, all events with one key.

`simple` computes the probability of every buffered event, `ssort` of those in reach, `eager` and
`lazy` of those in probe regions; the look-up tables spare most of these, and `indexed` computes
none. So far the paper's claims hold without a clock. The times also hold what is not
correlation: by arrival, the call into a compiled kernel, some 20 µs an event; by block, sorting and
merging. The more pairs an event has, the less the call counts: at 16,000/s `eager` is well below
`simple`. `ssort` gains nothing over `simple`: the pairs that it spares are far apart, which one
comparison tells, and it computes its bounds anew at every call. At 16,000/s a block writes some
250 MB of pairs; `auto` then does the work of `lazy_lookup`, and where their times differ, it is in
getting that memory from the system.
"""

FIGURE_6 = """\
**The paper's claim.** The larger the blocks, the shorter the execution time, with smaller and
smaller gains.

**Here.** 500 events/s, deadline 500 ms, as in the paper. `simple`, `ssort` and `eager` know no
blocks.

**What is seen.** The same: the cost of a block (sorting, merging, one call for each segment) is
shared by more events. Single points are noise where the gains are small.
"""

FIGURE_7 = """\
**The paper's claim.** The hit ratio rises with the block size, most between 200 and 400, and is
stable from 1,200 on.

**Here.** The same events as in Figure 6. A hit is an event in a probe region that is decided
without computing a probability. Algorithm 7 leaves open what an entry of the table is:

- *as printed*: an entry is replaced only where its base event starts too early to be compared. A
  violated entry that could be compared stays (lines 9 to 11), and serves nobody;
- *by the prose* of section 4.2: an entry is the last base event that was computed;
- *satisfied entries*: the table keeps the most useful satisfied base event, and no violated one;
- *lazy_lookup*, as the software runs: satisfied entries, and beside them for each base event the
  most useful violated target, the other half of Corollary 2 (docs/proofs.md, P-LOOKUP-VIOLATED).

All are run with our probe regions and with those of the paper. The paper's left probe region is up
to d - ρ = 480 ms wide; ours is never wider than π - ρ = 180 ms, because targets are no longer than
π. The wider region adds pairs that our position decides, most of them satisfied: that raises the
ratio and saves nothing.

**What is seen.** As printed the table decides less than a tenth of our probe regions. The prose
decides 28 to 39 %, satisfied entries 36 to 43 %, and with violations carried over 74 to 81 %. With
the paper's regions every reading falls with the block size, as printed most. With ours it changes
by less than two points, and at a threshold of 0.5 satisfied entries rise by one; with violations
carried over it falls from 81 to 78 % at 0.8.

**Why it differs.** Not known. The width of the regions does not explain it: with the paper's own
regions no reading of the algorithm rises. The paper says that hit ratios depend on how far the
input is sorted, and does not publish its input.
"""

FIGURE_8 = """\
**The paper's claim.** Over input that is sorted by latest time, `lazy_lookup` is the fastest at
every threshold. Its lead over `lazy` shrinks with the threshold, because the left probe region
shrinks, which is by far the larger one.

**Here.** Deadline 1,000 ms, as in the paper; 1,600 events/s; the paper names no rate. The
probe regions are those of a base event of middle length.

**What is seen.** The lazy family is the fastest, with `lazy_lookup` not behind `lazy` beyond noise.
Its lead over `lazy` is about twice as large at a threshold of 1 as below, a sixth of the time there
and a tenth elsewhere; the hit ratio falls with the threshold.

**Why it differs.** The two probe regions together are π - ρ = 180 ms wide at every threshold: what
the left one loses the right one gains (the column shows it). In the paper the left one is d - ρ =
980 ms wide at a threshold of 1. So there is less to save here at high thresholds. Writing the pairs
down, which nobody can save, is most of the time.
"""

KERNELS = """\
Not in the paper: all algorithms as kernels, each called once over two whole streams of one key,
sorted by latest time; processor time of one core, the best of several runs. M events/s counts the
events of both streams. The last two columns are the seconds of the other divided by those of the
algorithm, so that more is better: a sequential write of the same pairs that decides nothing, and a
plain numba loop that computes every pair in the support of the window. Beside uniform lengths there
are streams with only 8 lengths. With few pairs the aim is 5 million events a second; `simple` is
left out there, as it would decide every event with every other. The plain loop keeps no books, and
is ahead where there is next to nothing to find. `indexed` pays for every length that occurs:
ahead of all with few lengths and many pairs, like the others with few of both, far behind with as
many lengths as events.
"""

SLOPES = """\
`lazy_lookup` over events in no order, sorting included; n is the number of events of both streams.
The cost is n log n for sorting and searching, and the pairs. The quotient of time and
n log₂ n + pairs should stay level; it rises where the streams, or with many pairs these (17 bytes
each), no longer fit into the processor's caches and their memory comes fresh from the system. The
slope is that of the logarithms from the row before: a little above 1 for few pairs; for many about
2 as long as all lie in one window, for the pairs grow with n² there, and then nearer to 1.
"""
