"""What stands beside the figures: the paper's claim, what is seen here, and why it differs."""

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
2,000 ms (the query of section 3). Four joins over the same sorted streams: *plain* computes the
probability of every pair that the window can reach; *support* that of the pairs in the ranges of
Equations 4 to 6; *ranges* that of the pairs in the ranges of Theorem 3; *templates* decides these
by Theorem 2. All four find the same pairs. "Computed" is the share of the pairs of the plain window
whose probability is computed; the satisfaction times of all pairs of templates are computed once,
before any event; "kept" counts events of a stream, 100 ms of delay included.

**What is seen.** Each step prunes more than the one before, at every threshold. The share of
*support* does not depend on the threshold, as the paper says, and that of *ranges* hardly does:
the ranges move with the threshold more than they grow. Time follows what is computed. A wider
window has a larger satisfied range, so that a smaller share is left to probe. The higher the
threshold, the fewer events are kept.
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
