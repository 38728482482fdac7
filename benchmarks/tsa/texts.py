"""Texts of the tables: what is measured, how, and the result."""

GROWTH = """\
**The paper's claim.** Garbage collection prevents memory leaks, and fewer irrelevant events take
part in the evaluation. The paper leaves the measurement to future work.

**Here.** The running example, smoke without a report within five minutes, on key-less streams: 25
smokes per second in 10,000 areas, one area in a hundred without reports, delays up to 10 s. Every
minute of stream time is a block. *Naive* keeps all events and evaluates the whole query over all of
them in each block: a compiled loop over columns that compares areas by number and ends at the first
report that stops a smoke. *Without collection* is the operator, with keep values that keep all
events. *With collection* is the operator as it is. The ways take turns block by block, and find the
same alarms. The time is processor time per event since the row above. Bytes are those of the
buffered columns; the operator's sorted views of them are not included, and take 16 to 32 bytes an
event.
"""

ALONE = """\
**Here.** The running example with 10,000 areas, of which one in a hundred has no reports, on one
core, without Kafka and Spark. Within five minutes an area has one smoke (33/s) or 30 (1,000/s).
*Variable*: the area is an attribute of key-less streams, and `area {var X}` in both patterns. *Join
key*: the streams are keyed by area, and the query has no variables. Buffers are filled before the
measurement. All work of a slot is included: unpacking of the events, sorting, evaluation and
garbage collection (*evaluation*), a snapshot of the state after every block, and the alarms as JSON
(*records*). All alarms are checked. Aim: 1 million events/s, which is met from blocks of 64,000
events on, and missed with smaller ones.
"""

MANY = """\
**Here.** As above, the program alone on key-less streams, 1,000 smokes/s, blocks of 64,000 events:
evaluation and snapshot. *Deadlines*: the running example with deadlines from 150 to 450 s, so that
every smoke is due once for each query. *Equal*: the running example, as often as the number says.
*One area each*: `area {"area 17"}` in both patterns. Queries with equal positive parts share their
searches (docs/proofs.md, P-QUERY-SHARED), as far as the times that they decide in a block overlap:
a block is 32 s of stream time here, and the deadlines of 100 queries are 3 s apart. In smaller
blocks each query searches alone, at a cost of its own. Aim: 100 queries cost at most 5 times one,
which is met in blocks of 64,000 events; smaller blocks were not measured.
"""
