"""Texts of the figures: the paper's claim, the result here, and the cause of a difference."""

FIGURE_3 = """\
**The paper's claim.** With an increasing rate, the execution times of `simple` and `ssort` grow
much faster than those of `eager` and the lazy algorithms, because the regions save most evaluations
of probabilities. `ssort` is faster than `simple`, because obsolete events are contiguous and are
removed together. The lazy algorithms are faster than `eager`, because they process blocks.

**Here.** Lengths are uniform between 20 and 200 ms, delays up to 100 ms, blocks are 1,000 events of
a stream. The paper does not state its deadline and threshold: here they are 500 ms and 0.8, as in
its Figure 6. Above 1,600 events/s the events are spread over join keys of 1,600/s each. The unit is
ms of processor time per second of stream time: an algorithm above 1,000 ms does not keep up on one
core. `auto` and blocks of 0.25 s, as in a batch of the job, are not in the paper.

**Result.** The lazy algorithms need a small part of the time of the others, as claimed. The
algorithms that evaluate each event by itself are close together, and the claimed order among them
does not appear.

**Cause of the difference.** These algorithms are called once per event, and a call from Python into
a compiled kernel costs as much as the decision of a thousand pairs; the paper's Java did not have
this cost. The work itself is as in the paper: see "what an event costs". `indexed` is slow because
all events have different lengths: it then needs a search for every pair, and `auto` does not use
it. Blocks of 0.25 s are nearly empty at low rates. At high rates they are so large that the system
provides new memory for their pairs each time, which can cost more than finding the pairs. With many
keys and blocks of 1,000 events, few events of a block share a key, and the cost of a key is not
shared.
"""

FIGURE_4 = """\
**The paper's claim.** `eager` answers sooner than the lazy algorithms, in which events wait for
their block. Up to 400 events/s `simple` and `ssort` answer sooner too; where the processing cannot
keep up with the arrivals, the response time rises sharply.

**Here.** The response time of a pair is the completion of its correlation minus the later of its
two latest times. Arrivals follow stream time, and the algorithm is simulated as a server that needs
the measured processor time. All values include the delay of an event, 50 ms on average.

**Result.** Algorithms that evaluate each event by itself report a pair as soon as its later event
has arrived. With blocks of a fixed size the response time falls in proportion to the rate, to below
a second at the paper's highest rates. Where Figure 3 shows more than 1,000 ms per second, the queue
grows, and the mean depends on the length of the run: read such a value as "without bound". At
160,000/s this is the case for all algorithms except those with blocks of 0.25 s.

**Cause of the difference.** In the paper `simple` and `ssort` fall behind above 400 events/s; a
current core does not fall behind at 1,600. Far beyond the paper's rates the lazy algorithms fall
behind last, because they need the fewest operations and their blocks are full at once. Blocks of
0.25 s do not wait long at low rates; the batches of the job are therefore limited by time.
"""

FIGURE_5 = """\
**The paper's claim.** `eager` holds the fewest events. `ssort` holds fewer than `simple`. The lazy
algorithms hold about a block (1,000 events) more, with and without the look-up table.

**Here.** Events that wait for their block are counted, and so are obsolete events that are not yet
removed. All algorithms use the same keep values.

**Result.** The order is the same. `ssort` and `eager` share one sorted buffer and hold the same
number of events. `simple` holds a few more: an obsolete event stays while an event before it is
still needed.

**Cause of the difference.** The lazy algorithms hold half a block more, not a whole block: a block
grows from 0 to 1,000 events, and the mean is counted. At high rates they hold a quarter more:
stored segments are rewritten when half of their events are obsolete, not event by event.
"""

COSTS = """\
The paper explains Figure 3 by the probabilities that the regions save. All columns are means per
arriving event; all events have one key.

`simple` computes the probability of every buffered event, `ssort` of the events in reach, `eager`
and `lazy` of the events in probe regions. Look-up tables save about half of these, and `indexed`
computes no probability. These counts confirm the paper's claims. The times include other costs: for
evaluation by arrival the call into a compiled kernel, about 20 µs per event; for evaluation by
block sorting and merging. With more pairs per event, the call is a small part: at 16,000/s `eager`
is well below `simple`. `ssort` is not faster than `simple`: the pairs that it saves are far apart,
which one comparison decides, and it computes its bounds again at every call. At 16,000/s a block
writes about 250 MB of pairs; `auto` then does the work of `lazy_lookup`, and differences of their
times come from the allocation of this memory.
"""

FIGURE_6 = """\
**The paper's claim.** The larger the blocks, the shorter the execution time; the gains become
smaller.

**Here.** 500 events/s, deadline 500 ms, as in the paper. `simple`, `ssort` and `eager` do not use
blocks.

**Result.** The same: more events share the cost of a block (sorting, merging, one call for each
segment). Where the gains are small, single points are noise.
"""

FIGURE_7 = """\
**The paper's claim.** The hit ratio rises with the block size, most between 200 and 400, and is
stable from 1,200 on.

**Here.** The same events as in Figure 6. A hit is an event in a probe region that is decided
without computing a probability. Algorithm 7 does not define the entry of the table completely, so
four readings are compared:

- *as printed*: an entry is replaced only if its base event starts too early to be compared. A
  violated entry that could be compared stays (lines 9 to 11), without any use;
- *by the prose* of section 4.2: an entry is the last base event that was computed;
- *satisfied entries*: the table keeps only the most useful satisfied base event;
- *lazy_lookup*, as in this software: satisfied entries, and in addition for each base event the
  most useful violated target, the other half of Corollary 2 (docs/proofs.md, P-LOOKUP-VIOLATED).

All readings run with our probe regions and with those of the paper. The paper's left probe region
is up to d - ρ = 480 ms wide; ours is never wider than π - ρ = 180 ms, because targets are not
longer than π. The wider region adds pairs that our regions decide by position, most of them
satisfied: this raises the ratio and saves no work.

**Result.** As printed, the table decides less than a tenth of our probe regions. The prose reading
decides 28 to 39 %, satisfied entries 36 to 43 %, and `lazy_lookup` 74 to 81 %. With the paper's
regions every reading falls with the block size, the printed one most. With ours each reading
changes by about two points at most, except that `lazy_lookup` falls from 81 to 78 % at a threshold
of 0.8; at 0.5 satisfied entries and `lazy_lookup` rise by one point.

**Cause of the difference.** Not known. The width of the regions does not explain it: with the
paper's own regions no reading of the algorithm rises. The paper says that hit ratios depend on how
far the input is sorted, and does not publish its input.
"""

FIGURE_8 = """\
**The paper's claim.** On input that is sorted by latest time, `lazy_lookup` is the fastest at every
threshold. Its lead over `lazy` shrinks with the threshold, because the left probe region, by far
the larger one, shrinks.

**Here.** Deadline 1,000 ms, as in the paper; 1,600 events/s, because the paper does not state its
rate. The probe regions are those of a base event of middle length.

**Result.** The lazy algorithms are the fastest, and `lazy_lookup` is not slower than `lazy` beyond
noise. Its lead over `lazy` is a sixth of the time at a threshold of 1 and a tenth below; the hit
ratio falls with the threshold.

**Cause of the difference.** The two probe regions together are π - ρ = 180 ms wide at every
threshold: the right one gains the width that the left one loses (see the column). In the paper the
left one is d - ρ = 980 ms wide at a threshold of 1. A look-up table can therefore save less here at
high thresholds. Writing the pairs takes most of the time, for every algorithm.
"""

KERNELS = """\
Not in the paper: all algorithms as kernels, each called once on two whole streams of one key,
sorted by latest time. The values are processor time of one core, the best of several runs. M
events/s counts the events of both streams. The last two columns are the time of a reference divided
by the time of the algorithm, so larger is better. The references are a sequential write of the same
pairs without decisions, and a plain numba loop that computes every pair in the support of the
window. Besides uniform lengths there are streams with only 8 lengths. With few pairs the aim is 5
million events a second; `simple` is omitted there, because it would decide all pairs of events. The
plain loop keeps no counts, and is ahead where there are few pairs. The cost of `indexed` grows with
the number of different lengths: it is the fastest with few lengths and many pairs, like the others
with few of both, and far behind with as many lengths as events.
"""

SLOPES = """\
`lazy_lookup` on unsorted events, sorting included; n is the number of events of both streams. The
cost is n log n for sorting and searching, plus the pairs. The time divided by n log₂ n + pairs
should be constant. It rises when the streams, or many pairs (17 bytes each), no longer fit into the
processor's caches and the system provides new memory for them. The slope is that of the logarithms
since the previous row: a little above 1 for few pairs. For many pairs it is about 2 while all
events are in one window, because the pairs grow with n², and then approaches 1.
"""
