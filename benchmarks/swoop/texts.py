"""Texts of the tables: the source's claim, the result here, and the cause of a difference."""

RATES = """\
**The paper's claim.** The set rate of SWOOP falls much more slowly with the window than those of
`scase` and `base`; in all it is up to three orders of magnitude above `scase`. Of the paper's
experiments only these claims were at hand, not the values of its plots.

**Here.** 9 to 10 tokens a set of 100,000 tokens with Zipf's distribution (exponent 1), Jaccard, one
set per µs, so that the window is a number of sets. *swoop* is `TopKJoin` in blocks of 2,000 sets.
*refill* keeps 2k pairs and computes them from scratch when fewer than k remain. *scase* recomputes
the skyband and pairs a new set with every valid set; it counts overlaps as `swoop` does. *scase,
merge* counts them by the merge that the paper describes. *base* keeps all pairs (Algorithms 1 to
3); beyond 10,000 sets these do not fit into memory. All are compiled by numba, with sorted arrays
in place of trees, and have the same list after every piece. The window is filled in bulk. Rates are
medians of nine pieces, per second of processor time: pieces of 2,000 sets for *swoop* and *refill*,
of 20 sets (100 at the smallest window) for the others. Aims are rates of `swoop` on a core without
other work; further aims are 100 times `scase` at 10,000 sets, 500 times at 100,000, and twice
`refill`, all for k = 50.

**Advantages of the other operators.** *refill* does not maintain its inverted lists: those of the
whole stream are built before the measurement, which `swoop` does for each set. *scase* does not
recompute the skyband for a set without candidates. Tokens are numbered before the measurement, and
finding the changes of the list is not part of the rates of this table.

**Result.** As claimed, the distance to `scase` and `base` grows with the window. Against the
paper's kind of `scase` it is two orders of magnitude at 100,000 sets. `refill` is several times
faster than `swoop` while its stock does not run dry.

**Cause of the difference.** Here `scase` scans arrays: a valid set costs it about 20 ns, with a
merge about 60 ns, without the memory accesses of trees. This is most of the time of `scase`; the
skyband from scratch (next table) costs it little, because the stock is far smaller than its limit
of k pairs per valid set. `refill` answers a weaker question: it need not know the pairs that would
be listed if better ones ended, so that a new set has to beat one high threshold. The skyband lower
bound is low for the newest sets, whose pairs end last. The price of `refill` is the time for which
it stops when its stock runs dry ([table](#swoop-a-stock-that-is-computed-again-when-it-runs-dry)).

**Missed aims, for k = 50.** `swoop` has 0.16 times the rate of `refill` at 10,000 sets and 0.24
times at 100,000, not twice its rate: `refill` takes its list from pairs that were computed
beforehand, and the minimal stock costs more for each set. `swoop` has 20 times the rate of `scase`
at 10,000 sets and 150 times at 100,000, and 52 and 351 times the rate of `scase` with merges, not
100 and 500 times: this `scase` is compiled, scans arrays, and without merges counts overlaps as
`swoop` does.

**Other rates of `swoop` at 10,000 sets and k = 50.** The table has random sets; real messages reach
131,352 sets/s with all messages, whose pairs of equal sets make the stock small, and 74,441 with
distinct ones, whose stock is larger. Later tables have 52,535 to 72,879 for the same random sets:
other work slowed those runs more than that of this table.
"""

COSTS = """\
**The paper's claim.** Bounds reduce the similarity computations of a new set to a small fraction of
the window. Incremental maintenance of the stock alone makes the join up to ten times as fast.

**Here.** The runs of the table before. *Met* counts the valid sets that `swoop` reads in inverted
lists (the paper's pre-candidates), *counted* those whose overlap is counted, *candidates* those
that are merged into the stock; all per set. *Skyband from scratch* is the time of `scase` to
recompute its skyband once.

**Result.** The share of the window that is met falls with the window, and the overlap is counted
for a few sets only. The number of candidates depends on k, hardly on the window. To recompute the
skyband for each set would take a third to three quarters of the time of `swoop` for k = 10, 0.6 to
0.8 of it for 50, and four to seven times as long for 1,000: the claim is confirmed for large k.
"""

LATENCY = """\
**The paper's claim.** The latency, from the appearance of a set to the new list, grows with the
window much more slowly than that of `scase` and `base`.

**Here.** As above; wall time of calls from Python with one set each, or sixteen. A call of
`TopKJoin` without sets shows the part that depends on neither the window nor k: it is the cost to
hand about fifty arrays to a compiled function, which blocks share. The reference operators have
fewer arrays.

**Result.** As claimed: the median of `swoop` hardly depends on the window. For k up to 50 single
sets cost it mostly the call, which blocks of sixteen share; for k = 1,000 the work of a set is as
large as the call. `scase` is faster at 1,000 sets and k up to 50. Another benchmark ran on the
other core, and the maximum includes interruptions by other programs.
"""

SIMILARITY = """\
**The paper's claim.** SWOOP works with all well-behaved similarities (Definition 4.1).

**Here.** As above, for each window, k and similarity.

**Result.** For all five the distance to `scase` is more than one order of magnitude at 10,000 sets
and more, and 4 to 7 times at 1,000. The distance to `base` is 10 to 148 times at 1,000 sets, and at
least three orders of magnitude at 10,000. `jaccard` and `dice` order pairs alike and do the same
work. `cosine` meets the most sets, because its upper bound falls most slowly with the position of a
token. `overlap` meets the fewest but for 100,000 sets and k = 10, and counts the largest share of
them: sizes exclude little, since sets of any size can have the overlap needed. Another benchmark
ran on the other core.
"""

ORDERS = """\
**The paper's claim.** Numbering tokens by first appearance and reading the list of the newest token
first is effective if frequencies are stable. If they change, it is inefficient, and the shortest
list should be read first (section 5.5).

**Here.** 10,000 sets, k = 50. In *drifting*, a new token becomes the most frequent one after every
hundredth set, and all others fall back one rank. *Messages* are the distinct messages described
below.

**Result.** Both orders find the same candidates. Shortest first meets fewer sets on all streams;
newest first meets about twice as many on drifting tokens. The paper's heap and comparisons of list
lengths cost little, so that shortest first is the default (`search: shortest`).
"""

MESSAGES = """\
**Here.** 258,145 chat messages of 2018 in the order of their times (package chitchat-dataset, MIT
licence), each as its set of lower-case words: 8.9 words on average, 39,658 different words; windows
count messages. *All* has every message with a word, *distinct* only the first of equal sets.
*Repeated* is the share of valid messages that equal another valid one; *equal pairs listed* counts
the pairs of the first list that are equal.

**Result.** With all messages the list consists mostly of pairs of equal messages (greetings,
"yeah", "what about you"), ordered by time only, and the stock is small: pairs of equal messages
that end later replace others. Distinct messages behave like random sets.

**Missed aims.** The aims of the first table are rates on a quiet core. At 10,000 distinct messages
`swoop` has 74,441 sets/s for k = 50, not 75,000, and 10,782 for k = 1,000, not 15,000: other work
slowed this run (in the table of orders, distinct messages and random sets have the same rate), and
for k = 1,000 each set changes a stock of thousands of pairs.
"""

SPARES = """\
**Here.** 10,000 sets, k = 50, 40,000 sets inserted. `refill` has 0, 5, 50 or 200 spare pairs when
its stock is full. *Stable* is the random stream. In *bursts* a set is repeated 100 times in
succession, once in two windows: then its pairs fill the list, until they end together. *Messages*
are the distinct messages. *From scratch* counts the computations of the stock from all valid sets;
*max* is the maximum processor time of 100 sets.

**Result.** Without spare pairs `refill` computes its stock again whenever fewer than k pairs are
left: `swoop` has 1.6 to 1.8 times its rate, and 4 times on messages. With as many spare pairs as
listed ones `refill` is many times faster and rarely computes its stock, but then it stops for as
long as thousands of sets take, and for a second or so at 100,000 sets. `swoop` has no such stop,
and its cost does not depend on how the list changes. The better choice depends on the stream and on
the accepted latency.
"""

REBUILDING = """\
**The paper's claim.** The stock of `base` is quadratic in the window; the minimal stock is linear,
at most k pairs per valid set (Lemma 2).

**Here.** The stock of the first window is built in bulk, as after a restart, and by inserting the
sets one after the other in one block; the lists are equal. *Memory* is that of all arrays of
`TopKJoin` after the insertions: sets, inverted lists and stock. Pairs of `base` have 16 bytes.

**Result.** Bulk construction is faster than insertion. The stock is a small part of Lemma 2's
limit, and most of the memory belongs to sets and inverted lists.
"""
