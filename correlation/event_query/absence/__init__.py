"""The probability that no negated event stops a positive event, under uncertainty.

Problem. A positive event happens at T_s. For each negated alias there are candidates at T_r. All
times are independent; each is exact, uniform on an interval, or distributed as a histogram. A
candidate stops the positive event iff T_r - T_s is in the window of its alias. The positive event
is reported iff the probability P that no candidate stops it is at least the threshold.

Given T_s, the candidates are independent. Without it they are not, because all of them are compared
with the same T_s. Therefore P = E over T_s of Π (1 - P(T_r - T_s in the window)), which is not the
product of the pairwise probabilities.

Interface in columns. An operator calls:

    positives = make_table(earliest, latest, shape)           # int64[k], int64[k], shapes
    windows = make_windows(lo, hi, open_lo, open_hi, cuts)    # int64[k, w], bool[k, w], Cuts
    negated = [Negated(table, begin, end, windows), ...]      # int64[k]: rows begin to end - 1
    barred = Barred(owner, lo, hi)                            # int64[n]; may be left out
    decisions = decide_absences(positives, negated, threshold, barred)
    decisions.reported, decisions.probability                 # bool[k], float64[k]
    decisions.counts                                          # {"position": …, "filter": …, …}

- `make_table` takes the columns `earliest`, `latest` and `shape` of a segment, or of some of its
  rows. A table is sorted by latest within a key, so that the candidates of a positive event are a
  range. Any range that contains all events with earliest ≤ latest_s + max hi and latest ≥
  earliest_s + min lo is right; further candidates of the alias cost a comparison each.
- All rows of a range are candidates. Events whose key or attributes do not match must be left out
  by the caller: by another range, or by `take_instants` of the matching rows.
- An alias whose events are in several segments has an entry in `negated` for each of them. The
  entries of all aliases have the same positive events, in the same order.
- The window of `T_r - T_s ≤ c` is lo = -INFINITE_US, hi = c; a conjunction of atoms is one
  interval, a disjunction several, which may overlap. Strict relations have open ends: for two exact
  times the difference must be inside by 1 µs, for others open and closed ends are equivalent. The
  end of an open interval is c itself, not c - 1. Unused intervals have lo > hi.
- If all positive events of a combination are exact, T_s is any of them, and the relations to the
  others are ends relative to T_s. If one is uncertain, T_s is its time. Relations of a negated
  event to the others then are fixed ends of T_r. Relations between T_s and the others in a
  disjunction with the negated event are fixed ends of T_s. They are `cuts`: an interval of the
  window with fixed ends is a box, which counts only between them. The open ends of T_r, and of T_s,
  count if this time is exact.
- `Barred` has the values of T_s at which relations to events with exact times stop the combination:
  relations among its positive events that do not hold, and negated events with exact times.
- An event may be a candidate of several aliases. It has one instant, so its entries need `events`:
  numbers by which it is recognised, and is in the union of the windows.
- A candidate must not be the positive event itself: their times are not independent. Such an event
  stops the positive event iff 0 is in the window, and T_s between the fixed ends
  (`cuts.list_own_stops`).

`describe_absence` returns the same decision with its reasons, for one positive event.

Modules, from top to bottom: `describe`, `deciding`, `filter`, `factors`, `gathering`, `position`
(decisions by position), `cuts` (fixed ends and exact times), `gauss`, `exact`, `barring`,
`windows`, `instants`. Proofs: docs/proofs.md, P-ABSENCE, P-ABSENCE-POSITION, P-ABSENCE-BARRED,
P-ABSENCE-BOUNDS, P-ABSENCE-FILTER.
"""
