"""Limits of the size of a query; within them no recursion over a query is deep."""

from __future__ import annotations

# Maximum number of characters of the text, and of the canonical text.
MAX_CHARACTERS = 65_536
# Maximum depth of parentheses, `not`, `min` and `max`, and of the parsed formula.
MAX_NESTING = 32
# Maximum number of positive and negated events: within the steps of `relevance.work`, 256 clauses
# over as many positive events can be analysed.
MAX_EVENTS = 16
# Maximum number of attributes of an event or a result.
MAX_ATTRIBUTES = 100
# Maximum number of characters of a name: that of names of streams.
MAX_NAME = 63
# Maximum number of digits of a number.
MAX_DIGITS = 40
# Maximum number of problems that are reported together.
MAX_PROBLEMS = 20
# Maximum number of names among which similar ones are searched.
MAX_SEARCHED = 200
