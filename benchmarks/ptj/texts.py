"""Texts of the figures: the paper's claim, the result here, and the cause of a difference."""

FIGURE_3 = """\
**The paper's claim.** For one event and a deadline of 1,500 ms, the partners sorted by latest time
form violated, probed, satisfied, probed and violated ranges. The ranges of Theorem 3, computed from
the satisfaction times of the templates, leave much less to probe than ranges computed from the ends
of the histograms alone (Equations 4 to 6).

**Here.** As in Example 5: threshold 0.8, the event detected at 5,000 ms, 500 random templates. The
paper does not say how it drew them; here they have 2 to 10 buckets and lengths of 200 to 1,000 ms.
The shaded area is between the minimum and the maximum probability over the templates.

**Result.** The same. Each range of Theorem 3 begins or ends where the shaded area crosses the
threshold: tighter ranges are not possible.
"""

COMPARISON = """\
**The paper's claim.** The paper does not print measurements. It argues that satisfaction times make
the probed ranges tight (Theorem 3), decide each pair in them in constant time without a probability
(Theorem 2), and shorten the time for which events are kept (Theorem 4).

**Here.** Both streams have 100 events/s and 60 random templates each, d is 1,500 ms (Example 5) and
2,000 ms (the query of section 3). The events go through a registered condition in blocks of a
quarter of a second, as in the job and in a replay. *simple* computes the probability of every pair;
*ssort* decides the pairs in reach one by one. *One by one* is `lazy` on a stream that does not
declare its templates: supports decide some pairs (Equations 4 to 6), quantiles and probabilities
the others. *lazy*, *indexed* and *auto* have the s-windows of all pairs of templates. All
algorithms find the same pairs. "Computed" is the share of all pairs that are decided by quantiles
or a probability; it is also 0 for `indexed` and `auto`. The s-windows of all pairs of templates are
computed once. "Kept" counts events of a stream, 100 ms of delay included.

**Result.** With s-windows the computed share is 0 at every threshold, and events are kept for a
shorter time at higher thresholds. At 100 events/s a block has 25 events of a stream: the fixed cost
of a block is most of the time of every algorithm, and differences of a fifth are noise. Only
*simple* is clearly slower. The blocks of the next table have more events.
"""

SIZES = """\
**Here.** As above, with the 500 templates of Example 5 and with fewer; 400 events/s, 4,800 events
of a stream; d is 1,500 ms with a threshold of 0.8, and 100 ms with 0.1: this window is narrower
than the events are long. *One by one* is as above. *At once* is `lazy` from the registration on:
s-windows are not known at the beginning, and a part of them is computed in each of the 48 blocks.
*lazy* and *auto* have all s-windows. "Not outside" counts the pairs that supports do not decide as
violated. Times are processor time per such pair, with all of the program's work. "All s-windows" is
the time to compute them.

**Result.** With s-windows a pair takes less time than without at each of these sizes, in a narrow
window about half with up to 200 templates. An s-window takes 5 µs in wide windows, for any number
of templates, and 35 µs in narrow ones. *At once* computes s-windows during the twelve seconds of
this stream, with many templates only a part of them. With 200 or more, computing them in each block
costs more than these few events save; the cost occurs once, and the s-windows are stored. The
processes shared two cores with others: compare only the values of one row.
"""

OWN = """\
The paper has templates. If each event has a histogram of its own, satisfaction times cost more than
they save. **Here.** As above, but with a random histogram for each of 4,000 events of a stream. The
pairs that supports leave undecided are decided by quantiles of either shape where possible
(docs/proofs.md, P-QUANTILES), and by the probability otherwise. *Without* runs with quantiles that
decide no pair, so that each probability is computed; *intervals* is the look-up table on intervals
between the same ends. The pairs with and without quantiles are equal.

**Result.** About three quarters of the pairs that supports leave undecided need no probability, and
more at higher thresholds. Events with histograms of their own still cost about twenty times as much
as intervals, which have a look-up table and shapes of one kind.
"""
