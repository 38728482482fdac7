"""Texts of the tables that are measured through Kafka and Spark (`tsa.path`)."""

SHARING = """\
**Here.** Kafka to Spark to Kafka, as fast as Kafka accepts the events: 33 smokes/s of stream time
in 10,000 areas, and the queries of the table before. The CPU time is that of the job with its JVM
and Python workers. Aim: 100 queries cost at most 5 times one, which is met.
"""

AGAINST = """\
**Here.** The running example on the same topics and records, sent as fast as Kafka accepts them.
Spark joins each smoke with the reports of its area within the deadline by a left outer join, and a
filter keeps the smokes without a report. Within five minutes an area has one smoke (33/s) or ten
(330/s). The session is that of the job, but with a compiled plan. Its JVM compiles with the first
of Java's two compilers only; *both compilers* is the default of Java. All alarms up to five minutes
before the end are checked. CPU time excludes broker and producer. The last column is CPU time
divided by that of Coincide. Aim: 10, which is met: the ratios are 14.4 to 32.6. Measured with a
million events on an Intel Xeon; with 0.4 million events, on an AMD EPYC and an earlier version, the
ratios were 3.1 to 8.3.
"""

ANSWERS = """\
**Here.** Two hours of an evening, eight of a night, two of a morning. By day there are 60 smokes
an hour, and one in ten is not reported. By night there are three an hour, and they are not
reported: each is an alarm. Events are sent in steps of 20 minutes of stream time, and both evaluate
each step until nothing is left to do. A delay is the stream time from a smoke to the end of the
step after which its alarm can be read; at best it is 5 to 25 minutes. The sources of Coincide's
streams send a heartbeat at the end of each step. Spark's watermark is the minimum over both streams
and has no heartbeats. With the watermark policy *max* it follows the faster stream, and drops the
events of the slower one that are older.
"""
