"""Texts of the figures: the paper's claim, the result here, and the cause of a difference."""

FIGURE_3 = """\
**The paper's claim.** For one event and a deadline of 1,500 ms, the partners sorted by latest time
fall into violated, probed, satisfied, probed and violated ranges. The ranges of Theorem 3, made
from the satisfaction times of the templates, leave much less to probe than those made from the ends
of the histograms alone (Equations 4 to 6).

**Here.** As in Example 5: threshold 0.8, the event detected at 5,000 ms, 500 random templates. The
paper does not say how it drew them; here they have 2 to 10 buckets and lengths of 200 to 1,000 ms.
The shaded area is the least and the greatest probability of any of the templates.

**What is seen.** The same. Each range of Theorem 3 begins or ends where the shaded area crosses the
threshold: none could be tighter.
"""

COMPARISON = """\
**The paper's claim.** The paper prints no measurements. It argues that the satisfaction times make
the ranges to be probed tight (Theorem 3), let each pair in them be decided in constant time without
a probability (Theorem 2), and shorten the time for which events are kept (Theorem 4).

**Here.** Both streams have 100 events/s and 60 random templates each, d is 1,500 ms (Example 5) and
2,000 ms (the query of section 3). The events go through a registered condition in blocks of a
quarter of a second, as in the job and in a replay. *simple* computes the probability of every pair,
*ssort* decides those in reach one by one. *One by one* is `lazy` where the stream does not declare
its templates: supports decide what they can (Equations 4 to 6), and the rest is decided by
quantiles and by probabilities. *lazy*, *indexed* and *auto* have the s-windows of all pairs of
templates. All find the same pairs. "Computed" is the share of all pairs that are decided by
quantiles or a probability, which `indexed` and `auto` do for none either; the s-windows of all
pairs of templates are computed once; "kept" counts events of a stream, 100 ms of delay included.

**What is seen.** With s-windows nothing is computed at any threshold, and events are kept for a
shorter time the higher the threshold is. At 100 events/s a block has 25 events of a stream: most of
the time of any way is what a block costs, whatever it holds, and differences of a fifth are noise.
Only *simple* is clearly slower. The next table has more to do in each block.
"""

SIZES = """\
**Here.** As above, with the 500 templates of Example 5 and with fewer; 400 events/s, 4,800 of a
stream; d is 1,500 ms with a threshold of 0.8, and 100 ms with 0.1: a window that is narrower than
the events are long. *One by one* as above. *At once* is `lazy` from the registration on: nothing is
known before, and the s-windows are computed a slice in each of the 48 blocks. *lazy* and *auto*
have all of them. "Not outside" counts the pairs that supports do not decide as violated; times are
processor time for each of these, all of the program's work included. "All s-windows" is what
computing them takes.

**What is seen.** A pair takes less with s-windows than without at any of these sizes, in a narrow
window about half. Of wide windows an s-window takes 5 µs whatever the number of templates, of
narrow ones 35 µs. *At once* pays for s-windows during the twelve seconds of this stream, a part of
all of them where there are many: a slice in each block, which is more than these few events are
worth. It is spent once, and stored. Processes shared two cores with others: compare the figures of
one row.
"""

OWN = """\
The paper has templates; where each event has a histogram of its own, satisfaction times cost more
than they save. **Here.** As above, but with a random histogram for each of 4,000 events a stream.
What supports leave open is decided by five numbers about either shape if these can tell
(docs/proofs.md, P-QUANTILES), and by the probability if not. *Without* goes the same way with
numbers that tell nothing, so that each probability is computed; *intervals* is the look-up table on
intervals between the same ends. Pairs with and without are equal.

**What is seen.** About three quarters of what supports leave open take no probability, the more the
higher the threshold. Events with histograms of their own still cost some twenty times as much as
intervals do, which have a look-up table and shapes of one kind.
"""
