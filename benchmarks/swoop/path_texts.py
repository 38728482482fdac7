"""Texts of the tables that are measured through Kafka and Spark (`swoop.path`)."""

BACKLOG = """\
**Here.** Kafka to Spark to Kafka, 2 slots, batches of at most 20,000 sets, `report: batch`. All
sets are in Kafka before the job reads them. Windows contain 10,000 sets. *Generated* are lists of
tokens as in the first table of SWOOP; *messages* are the texts of the chat messages, divided into
words by the job. CPU time is that of the whole job: driver, JVM and Python workers; its ratio is
relative to one group of the grid. The columns from *reading* to *merging* are the steps of the job
on one core without Kafka and Spark, for the same batches: parsing of JSON and packing for the
slots; the programs of both slots, with results as records and snapshots; the operators in these
programs; and the merge of the slots' lists. The last column is the operator divided by the CPU time
of the whole job. The last lists of one group and of two are equal.

**Result.** With k = 50 the operator is the smaller part of the CPU time: Kafka, Spark and the
reading of records cost more. With k = 1,000 it is about half. With two groups the operators take
1.7 to 1.9 times as long: each set is in two cells, and its cost depends little on the number of
sets in a cell. Two slots together can therefore be little faster than one. Other programs shared
the cores during this run: differences of the rate (*sets/s*) between one group and two are not
reliable.
"""

LIVE = """\
**Here.** As above, k = 1,000, generated sets, which carry the time at which they are sent. The
window is filled before. A time is that from the sending of a set until a pair of this set enters
the list (`entered` with the reason `set`): until the job has *found* the change, and until a
consumer that reads committed records has *received* it. A set takes effect when both partitions of
the topic have a later one. Producer, broker and consumer share the cores; the CPU time is that of
the job, relative to one core.

**Result.** A set waits for the end of the batch before, and for its own. Other programs shared the
cores during this run, which made batches long. The differences between one group and two, and
between the rates, are within this noise.
"""

WINDOWS = """\
**Here.** As above, k = 50, one group: 400 windows of 10,000 sets, sent in steps as fast as Kafka
accepts them; the values are those after each step. Memory is the resident memory of all processes
of the job (a page that several processes share is divided among them). The checkpoint contains
the states of the last batches, the buffer is the state of one. At the end a set follows 0.8 windows
later, and the list of the 2,000 sets that are still valid equals that of brute force
(tests/oracle/topk.py).

**Result.** The state, the stock and the memory of Python are flat. The checkpoint levels off when
Spark begins to remove the states of old batches. The memory of the JVM, whose heap may grow to
2 GiB, grows more and more slowly: by 83 MiB in the second to fifth step, and by 58 MiB in the last
five. Other work took most of both cores during this run, so the rates are low.
"""
