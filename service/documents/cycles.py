"""Loops of conditions: the alarms of each condition are events of the next.

The graph has conditions and topics as nodes, so that its size is linear in the configuration, even
if many conditions write to a topic that many others read. A condition is part of a loop if and only
if its strong component (Tarjan, "Depth-first search and linear graph algorithms", SIAM J. Comput.
1972) has several nodes: no edge joins a node with itself. The components are computed once; a loop
is searched once in each of them. All calls together take time linear in the configuration.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from service.errors import InvalidDocumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from correlation.operators import Condition
    from correlation.resources.streams import Stream

    # A condition or a topic: its kind and its name.
    Node = tuple[str, str]
_CONDITION, _TOPIC = "condition", "topic"
# Max number of conditions of a loop that a message names.
_SHOWN = 10


class Flow:
    """Graph of conditions, from the writers of topics to their readers.

    Parameters
    ----------
    conditions, streams : iterable
        All conditions and streams.
    """

    def __init__(self, conditions: Iterable[Condition], streams: Iterable[Stream]) -> None:
        topic_of = {stream.name: stream.topic for stream in streams}
        followers: dict[Node, set[Node]] = {}
        for condition in conditions:
            node = (_CONDITION, condition.name)
            if condition.output_topic is not None:
                followers[node] = {(_TOPIC, condition.output_topic)}
            for name in condition.streams:
                if name in topic_of:
                    followers.setdefault((_TOPIC, topic_of[name]), set()).add(node)
        self._followers = {node: sorted(found) for node, found in followers.items()}
        # A loop of each component in which one was searched, by the number of the component.
        self._loops: dict[int, list[str]] = {}

    def find_loop(self, begin: Iterable[str]) -> list[str]:
        """Find a loop of conditions, whose alarms come back to them as events.

        Parameters
        ----------
        begin : iterable of str
            Names of conditions; only loops that are connected with one of them in both directions
            are searched, and at first those through it.

        Returns
        -------
        list of str
            Names of the loop's conditions: each writes to a topic that the next reads. Empty: no
            loop.
        """
        for name in begin:
            component = self._components.get((_CONDITION, name))
            if component is not None:
                if component not in self._loops:
                    self._loops[component] = _path_back((_CONDITION, name), self._followers)
                return self._loops[component]
        return []

    def refuse_loop(self, begin: Iterable[str], field: str) -> None:
        """Check that the conditions form no loop.

        Parameters
        ----------
        begin : iterable of str
            As in `find_loop`.
        field : str
            Field that the error names.

        Raises
        ------
        InvalidDocumentError
            When they form a loop; names its conditions.
        """
        loop = self.find_loop(begin)
        if loop:
            left = len(loop) - _SHOWN
            cut = [f"({left} further conditions)"] if left > 0 else []
            way = " -> ".join([*loop[:_SHOWN], *cut, loop[0]])
            raise InvalidDocumentError.of(
                field,
                f"the alarms would become events of their own conditions: {way}",
                "use a topic that none of these conditions reads",
            )

    @cached_property
    def _components(self) -> Mapping[Node, int]:
        """The numbers of the strong components with several nodes, by node."""
        found = (it for it in _strong_components(self._followers) if len(it) > 1)
        return {node: number for number, nodes in enumerate(found) for node in nodes}


def _strong_components(followers: Mapping[Node, Sequence[Node]]) -> Iterator[list[Node]]:
    """Yield the strong components of a graph by Tarjan's algorithm, without recursion."""
    order: dict[Node, int] = {}
    # Lowest place in `order` of an open node that a node reaches.
    lowest: dict[Node, int] = {}
    open_nodes: dict[Node, None] = {}
    for root in followers:
        if root in order:
            continue
        path = [(root, iter(followers[root]))]
        order[root] = lowest[root] = len(order)
        open_nodes[root] = None
        while path:
            node, left = path[-1]
            follower = next(left, None)
            if follower is None:
                path.pop()
                if path:
                    above = path[-1][0]
                    lowest[above] = min(lowest[above], lowest[node])
                if lowest[node] == order[node]:
                    component: list[Node] = []
                    while not component or component[-1] != node:
                        component.append(open_nodes.popitem()[0])
                    yield component
            elif follower not in order:
                order[follower] = lowest[follower] = len(order)
                open_nodes[follower] = None
                path.append((follower, iter(followers.get(follower, ()))))
            elif follower in open_nodes:
                lowest[node] = min(lowest[node], order[follower])


def _path_back(begin: Node, followers: Mapping[Node, Sequence[Node]]) -> list[str]:
    """Search breadth-first for a path from a condition back to itself; return its conditions."""
    before: dict[Node, Node] = {}
    waiting = [begin]
    for node in waiting:
        for follower in followers.get(node, ()):
            if follower == begin:
                path = [node]
                while path[-1] != begin:
                    path.append(before[path[-1]])
                return [name for kind, name in reversed(path) if kind == _CONDITION]
            if follower not in before:
                before[follower] = node
                waiting.append(follower)
    return []
