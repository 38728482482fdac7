"""Grammar of event queries.

Event query language
--------------------
A query detects combinations of positive events for which no negated event exists::

    DETECT Alarm {area {var X}}
    ON event s: Smoke {area {var X}}
       not event r: Report {area {var X}}
    WHERE s.rt.end <= r.rt.begin,
          r.rt.begin <= s.rt.end + 5 min
    END

- ``DETECT Type {…}``: the result and its attributes, each ``name {var X}`` or a constant. Blanks or
  commas separate attributes. Braces without attributes can be left out.
- ``ON``: ``event alias: Type {…}`` and ``not event alias: Type {…}``; at least one is positive. An
  attribute is ``name {var X}``, ``name {"string"}``, ``name {3}``, ``name {true}`` or a
  comparison such as ``name {>= 3}``. Attributes with the same variable are equal.
- ``WHERE`` (optional): relations ``t1 op t2`` with op in <, <=, >, >=, =. From weak to strong they
  are joined by a comma, ``or``, ``and``, ``not``; a comma means ``and``.
- Temporal terms: ``alias.rt.begin``, ``alias.rt.end``, ``t + c``, ``t - c``, ``min(t, …)``,
  ``max(t, …)``. A constant c is a decimal number and a unit: ms, s, sec, min, h, d.
- ``Type.rt.begin = t`` and ``Type.rt.end = t``, with the type of the result, state its time
  (`result_times`).
- Keywords and units in upper or lower case; names are case-sensitive. Strings have the escapes of
  JSON. A comment begins with ``--`` and ends with the line.

The grammar is LALR(1). The lexer is contextual: it only matches the terminals that may follow, so
that attributes and variables can be called like keywords.

Reference. Novoseltsev 2013 (TSA): the running example, temporal relation formulas.
"""

from __future__ import annotations

import re
from itertools import chain

# Aliases, variables, and types that WHERE names.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Words that cannot be aliases.
KEYWORDS = frozenset(
    ("detect", "on", "event", "not", "where", "and", "or", "min", "max", "var", "end")
)
GRAMMAR = r"""
start: _DETECT TYPE [output] _ON event+ [_WHERE formula] _END

output: _LBRACE [output_attribute (_COMMA? output_attribute)*] _RBRACE
output_attribute: ATTRIBUTE _LBRACE (variable | constant) _RBRACE

event: [NOT] _EVENT ALIAS _COLON TYPE [attributes]
attributes: _LBRACE [attribute (_COMMA? attribute)*] _RBRACE
attribute: ATTRIBUTE _LBRACE (variable | constant | comparison) _RBRACE
variable: _VAR VARIABLE
comparison: OPERATOR constant
constant: STRING | NUMBER | BOOLEAN

?formula: disjunction
    | disjunction (_COMMA disjunction)+ -> conjunction
?disjunction: conjuncts
    | conjuncts (_OR conjuncts)+
?conjuncts: factor
    | factor (_AND factor)+ -> conjunction
?factor: relation
    | NOT factor -> negation
    | LPAR formula _RPAR -> group
relation: term OPERATOR term
?term: operand
    | operand offset+ -> shifted
offset: SIGN DURATION UNIT
?operand: point
    | EXTREME LPAR term (_COMMA term)* _RPAR -> extreme
    | LPAR term _RPAR -> group
point: ALIAS _DOT _RT _DOT SIDE

_DETECT: /detect(?!\w)/i
_ON: /on(?!\w)/i
_EVENT: /event(?!\w)/i
_WHERE: /where(?!\w)/i
_END: /end(?!\w)/i
_VAR: /var(?!\w)/i
_AND: /and(?!\w)/i
_OR: /or(?!\w)/i
_RT: /rt(?!\w)/i
NOT.2: /not(?!\w)/i
EXTREME.2: /(min|max)(?!\w)/i
BOOLEAN: /(true|false)(?!\w)/i
SIDE: /(begin|end)(?!\w)/i
UNIT: /(ms|sec|s|min|h|d)(?!\w)/i
_LBRACE: "{"
_RBRACE: "}"
LPAR: "("
_RPAR: ")"
_COMMA: ","
_COLON: ":"
_DOT: "."
OPERATOR: /(<=|>=|<|>|=)(?![<>=!])/
SIGN: /[+-]/
TYPE: /[A-Za-z0-9_](?:[A-Za-z0-9_.]|-(?!-))*/
ATTRIBUTE: /[A-Za-z0-9_](?:[A-Za-z0-9_.]|-(?!-))*/
ALIAS: /(?!(KEYWORDS)(?!\w))[a-z_][a-z0-9_]*/i
VARIABLE: /[A-Za-z_][A-Za-z0-9_]*/
DURATION: /[0-9]+(\.[0-9]+)?/
NUMBER: /-?[0-9]+(\.[0-9]+)?/
STRING: /"(?:[^"\\\x00-\x1f]|\\(?:["\\\/bfnrt]|u[0-9A-Fa-f]{4}))*"/
COMMENT: /--[^\n]*/
BLANKS: /[ \t\r\n\f]+/
%ignore COMMENT
%ignore BLANKS
""".replace("KEYWORDS", "|".join(sorted(KEYWORDS)))

# Names of the terminals in error messages, in the order in which they are listed.
READABLE: dict[str, tuple[str, ...]] = {
    "_DETECT": ("DETECT",),
    "TYPE": ("an event type",),
    "_LBRACE": ('"{"',),
    "_ON": ("ON",),
    "_EVENT": ('"event"',),
    "ALIAS": ("an alias",),
    "_COLON": ("a colon",),
    "ATTRIBUTE": ("an attribute",),
    "_VAR": ('a variable such as "var X"',),
    "VARIABLE": ("the name of a variable",),
    "STRING": ("a string in double quotes",),
    "NUMBER": ("a number",),
    "BOOLEAN": ('"true"', '"false"'),
    "EXTREME": ('"min"', '"max"'),
    "NOT": ('"not"',),
    "LPAR": ('"("',),
    "_DOT": ("a dot",),
    "_RT": ('"rt" as in s.rt.end',),
    "SIDE": ('"begin"', '"end"'),
    "DURATION": ("a duration such as 5 min",),
    "UNIT": ("a unit (ms, s, sec, min, h or d)",),
    "SIGN": ('"+"', '"-"'),
    "OPERATOR": ("a comparison (<, <=, >, >= or =)",),
    "_COMMA": ("a comma",),
    "_AND": ('"and"',),
    "_OR": ('"or"',),
    "_RPAR": ('")"',),
    "_RBRACE": ('"}"',),
    "_WHERE": ("WHERE",),
    "_END": ("END",),
    "$END": ("the end of the text",),
}


def readable(terminals: set[str]) -> tuple[str, ...]:
    """Return the names of terminals for an error message, in the order of `READABLE`."""
    names = {terminal: READABLE[terminal] for terminal in READABLE if terminal in terminals}
    if "_EVENT" in names and "NOT" in names:
        names["NOT"] = ('"not event"',)
    return tuple(chain.from_iterable(names.values()))
