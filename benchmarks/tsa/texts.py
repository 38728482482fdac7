"""Texts of the tables: the aim, the measurement, and the result."""

GROWTH = """\
TODO
"""
ALONE = """\
TODO
"""
MANY = """\
TODO
"""
SHARING = """\
TODO
"""
AGAINST = """\
TODO
"""
ANSWERS = """\
TODO
"""
