"""Constraint graphs of a query as an SVG document, without scripts, fonts or other files.

Each event has a lane; time runs to the right, not to scale. A node is the begin or the end of an
event, an edge the bounds between two of them. Negated events differ from positive ones by colour,
by hollow nodes and by dashed lanes. The colours follow the colour scheme of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from textwrap import wrap
from xml.sax.saxutils import escape

from correlation.event_query.checking import relevance_of
from correlation.event_query.condition import EventQueryCondition
from correlation.event_query.constraint_graph import (
    ConstraintGraph,
    Edge,
    distinct_ranks,
    draw_graphs,
    spans,
)
from correlation.event_query.language.writer import describe_time, write_attributes
from correlation.event_query.query import Point, Query
from correlation.event_query.relevance.describe import describe_in_words
from correlation.event_query.relevance.inputs import Input
from correlation.resources.streams import Stream

# Widths in px of one character of the labels and of the small text, a little too large.
_WIDE, _SMALL = 7.6, 6.4
_MARGIN, _LANE, _RADIUS = 24, 58, 7
_MIN_STEP, _TITLE, _AXIS, _LINE = 130, 34, 30, 19
_MIN_WIDTH = 520
# Distance of the control point of a bent edge from the middle.
_BEND = 84
_SHOWN = 60
_STYLE = """
svg { --back: #ffffff; --text: #1f2328; --muted: #59636e; --positive: #0969da;
  --negated: #cf222e; --line: #c8d1da; }
@media (prefers-color-scheme: dark) { svg { --back: #0d1117; --text: #f0f6fc; --muted: #9ea7b0;
  --positive: #58a6ff; --negated: #ff7b72; --line: #484f58; } }
text { font: 13px system-ui, sans-serif; fill: #1f2328; fill: var(--text); }
.title { font-weight: 600; } .small { font-size: 11px; fill: #59636e; fill: var(--muted); }
.back { fill: #ffffff; fill: var(--back); }
.lane { stroke: #c8d1da; stroke: var(--line); stroke-width: 1; }
.absent { stroke-dasharray: 5 4; }
.positive { stroke: #0969da; stroke: var(--positive); fill: #0969da; fill: var(--positive); }
.negated { stroke: #cf222e; stroke: var(--negated); fill: #ffffff; fill: var(--back); }
.node { stroke-width: 2; } .span { stroke-width: 5; stroke-linecap: round; }
.edge { stroke: #59636e; stroke: var(--muted); stroke-width: 1.5; fill: none; }
.tip { fill: #59636e; fill: var(--muted); }
.bound { text-anchor: middle; }
"""
_NAMESPACE = "http://www.w3.org/2000/svg"
_ROLE = 'role="img" aria-labelledby="title desc"'
_TIP = (
    '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" '
    'markerUnits="userSpaceOnUse" orient="auto">'
    '<path class="tip" d="M0 0.5 L8 4 L0 7.5 z"/></marker>'
)
_Box = tuple[float, float, float, float]


def draw_constraints(condition: EventQueryCondition, streams: Mapping[str, Stream]) -> str:
    """Return the constraint graphs of a query as an SVG document.

    Parameters
    ----------
    condition : EventQueryCondition
        The condition.
    streams : mapping of name to Stream
        Its streams.
    """
    relevance = relevance_of(condition, streams)
    graphs, further = draw_graphs(relevance)
    sentences = [*describe_time(condition.query), *describe_in_words(relevance)]
    panels = [_Panel(graph, condition.query) for graph in graphs]
    width = max((panel.width for panel in panels), default=_MIN_WIDTH)
    lines = ["Time runs to the right, not to scale."]
    lines += [it for sentence in sentences for it in wrap(sentence, int(width / _SMALL) - 8)]
    if further:
        lines.append(f"{further} further alternatives are not drawn.")
    body: list[str] = []
    top = float(_MARGIN)
    for panel in panels:
        body += [f'<g transform="translate(0 {top:g})">', *panel.draw(), "</g>"]
        top += panel.height
    for line in lines:
        top += _LINE
        body.append(_text(_MARGIN, top, line, "small"))
    height = top + _MARGIN
    head = f"Constraint graph of query {condition.name}"
    size = f'width="{width:g}" height="{height:g}"'
    return "\n".join(
        [
            f'<svg xmlns="{_NAMESPACE}" viewBox="0 0 {width:g} {height:g}" {size} {_ROLE}>',
            f'<title id="title">{escape(head)}</title>',
            f'<desc id="desc">{escape(" ".join([*_describe(graphs), *sentences]))}</desc>',
            f"<style>{_STYLE}</style>",
            f"<defs>{_TIP}</defs>",
            f'<rect class="back" {size}/>',
            *body,
            "</svg>\n",
        ]
    )


@dataclass
class _Panel:
    """Drawing of one graph, with its origin at its top left corner."""

    graph: ConstraintGraph
    query: Query
    _taken: list[_Box] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Horizontal position of the first rank."""
        labels = [len(text) * _WIDE for it in self.graph.inputs for text in [_head(it)]]
        labels += [len(self._pattern(it)) * _SMALL for it in self.graph.inputs]
        return _MARGIN + max(labels) + 3 * _RADIUS

    @property
    def step(self) -> float:
        """Distance of two ranks."""
        longest = max((len(edge.label) for edge in self.graph.edges), default=0)
        return max(_MIN_STEP, longest * _WIDE + 6 * _RADIUS)

    @property
    def width(self) -> float:
        right = self.left + (distinct_ranks(self.graph) - 1) * self.step + 8 * _RADIUS
        title = 2 * _MARGIN + len(self._title()) * _WIDE
        return max(right + _MARGIN, title, _MIN_WIDTH)

    @property
    def height(self) -> float:
        return _TITLE + len(self.graph.inputs) * _LANE + _AXIS

    def draw(self) -> Iterator[str]:
        """Yield the elements: lanes, then edges, then nodes above them, then bounds."""
        yield _text(_MARGIN, 14, self._title(), "title")
        yield from self._lanes()
        labels: list[str] = []
        for node in self.graph.ranks:
            x, y = self._place(node)
            self._taken.append((x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS))
        for edge in self.graph.edges:
            path, bound = self._edge(edge)
            yield path
            labels.append(bound)
        yield from self._nodes()
        yield from labels
        yield from self._axis()

    def _title(self) -> str:
        graph = self.graph
        if graph.negated is None:
            title = "Relations among positive events"
        else:
            title = f"No event {graph.negated} with these relations"
        if graph.alternatives > 1:
            title += f" (alternative {graph.alternative} of {graph.alternatives})"
        return title

    def _pattern(self, it: Input) -> str:
        event = next(event for event in self.query.events if event.alias == it.alias)
        shown = write_attributes(event)
        return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"

    def _place(self, point: Point) -> tuple[float, float]:
        lane = [it.alias for it in self.graph.inputs].index(point.alias)
        return self.left + self.graph.ranks[point] * self.step, _TITLE + (lane + 0.5) * _LANE

    def _lanes(self) -> Iterator[str]:
        for lane, it in enumerate(self.graph.inputs):
            y = _TITLE + (lane + 0.5) * _LANE
            pattern = self._pattern(it)
            yield _text(_MARGIN, y if pattern else y + 5, _head(it), "")
            if pattern:
                yield _text(_MARGIN, y + 15, pattern, "small")
            first, last = self.left - 2 * _RADIUS, self.width - _MARGIN
            kind = "lane absent" if it.negated else "lane"
            yield f'<path class="{kind}" d="M{first:g} {y:g} H{last:g}"/>'

    def _nodes(self) -> Iterator[str]:
        negated = {it.alias for it in self.graph.inputs if it.negated}
        lasting = {it.alias for it in self.graph.inputs if not it.is_instant}
        for v, p in spans(self.graph):
            (x1, y1), (x2, _) = self._place(v), self._place(p)
            kind = "negated" if v.alias in negated else "positive"
            yield f'<path class="span {kind}" d="M{x1:g} {y1:g} H{x2:g}"/>'
        for node in self.graph.ranks:
            x, y = self._place(node)
            kind = "negated" if node.alias in negated else "positive"
            yield f'<circle class="node {kind}" cx="{x:g}" cy="{y:g}" r="{_RADIUS}"/>'
            if node.alias in lasting:
                shift = 2.6 * _RADIUS
                yield _text(x, y + shift, node.side, "small", "middle")

    def _edge(self, edge: Edge) -> tuple[str, str]:
        """Return the path of an edge and the text of its bounds."""
        (x1, y1), (x2, y2) = self._place(edge.earlier), self._place(edge.later)
        bend = self._bend(edge)
        middle = ((x1 + x2) / 2 + bend[0], (y1 + y2) / 2 + bend[1])
        start = _towards((x1, y1), middle, _RADIUS + 2)
        tip = _towards((x2, y2), middle, _RADIUS + 3)
        path = (
            f'<path class="edge" marker-end="url(#tip)" d="M{start[0]:.1f} {start[1]:.1f} '
            f'Q{middle[0]:.1f} {middle[1]:.1f} {tip[0]:.1f} {tip[1]:.1f}"/>'
        )
        half = len(edge.label) * _WIDE / 2
        for share in (0.5, 0.42, 0.58, 0.34, 0.66, 0.26, 0.74):
            x, y = _on_curve(start, middle, tip, share)
            box = (x - half, y - 9, x + half, y + 9)
            if not any(_overlap(box, other) for other in self._taken):
                break
        self._taken.append(box)
        back = (
            f'<rect class="back" x="{box[0]:.1f}" y="{box[1]:.1f}" rx="4" '
            f'width="{box[2] - box[0]:.1f}" height="{box[3] - box[1]:.1f}"/>'
        )
        return path, back + _text(x, y + 4.5, edge.label, "bound")

    def _bend(self, edge: Edge) -> tuple[float, float]:
        """Return the offset of the middle of an edge that avoids other nodes."""
        (x1, y1), (x2, y2) = self._place(edge.earlier), self._place(edge.later)
        if y1 == y2:
            return 0.0, -_LANE * 0.6
        for node in self.graph.ranks:
            x, y = self._place(node)
            if min(y1, y2) < y < max(y1, y2):
                crossed = x1 + (x2 - x1) * (y - y1) / (y2 - y1)
                if abs(crossed - x) < 3 * _RADIUS:
                    # At a right angle to the edge, to the side of the crossing, or to the right.
                    side = 1 if crossed >= x else -1
                    share = side * _BEND / ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
                    return abs(y2 - y1) * share, (x1 - x2) * share * (1 if y2 > y1 else -1)
        return 0.0, 0.0

    def _axis(self) -> Iterator[str]:
        y = self.height - _AXIS / 2
        x = self.width - _MARGIN
        yield (f'<path class="edge" marker-end="url(#tip)" d="M{x - 70:g} {y - 4:g} H{x - 2:g}"/>')
        yield _text(x - 76, y, "time", "small", "end")


def _head(it: Input) -> str:
    return f"{'not event' if it.negated else 'event'} {it.alias}: {it.type}"


def _describe(graphs: Iterable[ConstraintGraph]) -> Iterator[str]:
    """Yield the edges in words, for readers who do not see the picture."""
    for graph in graphs:
        for edge in graph.edges:
            later, earlier = (f"{it.alias}.rt.{it.side}" for it in (edge.later, edge.earlier))
            yield f"{later} minus {earlier}: {edge.label}."


def _text(x: float, y: float, text: str, kind: str, anchor: str = "") -> str:
    more = f' text-anchor="{anchor}"' if anchor else ""
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{x:.1f}" y="{y:.1f}"{more}>{escape(text)}</text>'


def _towards(
    place: tuple[float, float], goal: tuple[float, float], distance: float
) -> tuple[float, float]:
    """Return the point at a distance from a place, in the direction of a goal."""
    dx, dy = goal[0] - place[0], goal[1] - place[1]
    length = (dx * dx + dy * dy) ** 0.5 or 1.0
    return place[0] + dx * distance / length, place[1] + dy * distance / length


def _on_curve(
    start: tuple[float, float], middle: tuple[float, float], end: tuple[float, float], share: float
) -> tuple[float, float]:
    """Return a point of a quadratic Bézier curve."""
    rest = 1 - share
    weights = rest * rest, 2 * rest * share, share * share
    x, y = (
        sum(w * p[axis] for w, p in zip(weights, (start, middle, end), strict=True))
        for axis in (0, 1)
    )
    return x, y


def _overlap(one: _Box, other: _Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
