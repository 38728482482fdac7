"""Texts of the tables that are measured through Kafka and Spark (`swoop.path`)."""

BACKLOG = """\
x
"""

LIVE = """\
x
"""

WINDOWS = """\
x
"""
