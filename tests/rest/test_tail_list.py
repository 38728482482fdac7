"""`coincide tail --list` in a terminal that is smaller than the list."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from correlation.topk.listed import ListedPair, SetRef
from correlation.topk.similarities import JACCARD
from tests.rest.test_explain_topk import write_list
from tests.rest.test_topk import SECOND, put_sets, put_topk
from tests.support.command import COMMAND
from tests.support.terminal import in_terminal

if TYPE_CHECKING:
    from tests.rest.running import Service

pytestmark = pytest.mark.kafka
WIDTH, HEIGHT = 110, 10
TITLE = "{}  as of 1970-01-01T00:00:09Z"


def make_pairs(name: str, count: int) -> list[ListedPair]:
    """Return pairs of sets of two tokens, one of which is shared."""
    key = JACCARD.key(1, 2, 2)
    older = [SetRef(9 * SECOND - it, 0, b"%s%d" % (name.encode(), it), 2) for it in range(count)]
    return [ListedPair(key, 1, it, SetRef(9 * SECOND, 0, b"new", 2)) for it in older]


def ids_of(lines: list[str]) -> list[str]:
    """Return the ids of the older sets."""
    return [line.split()[2].partition(":")[2] for line in lines]


def test_list_longer_than_the_terminal_is_cut_and_replaced(service: Service) -> None:
    path = put_topk(service, put_sets(service), k=100)
    name = path.rpartition("/")[2]
    write_list(service, path, make_pairs("a", 30))
    settings = service.settings
    environment = {"COINCIDE_BOOTSTRAP": settings.bootstrap, "COINCIDE_PREFIX": settings.prefix}
    command = [*COMMAND, "tail", "--list", name, "--count", "4"]
    with in_terminal(command, environment, WIDTH, HEIGHT) as terminal:
        screen = terminal.wait_for("and 23 more")
        assert screen[0] == TITLE.format(name)
        assert screen[1].split()[:3] == ["rank", "value", "older"]
        assert ids_of(screen[2:-1]) == [f"a{it}" for it in range(7)]
        # Another long list takes its place, and a short one.
        write_list(service, path, make_pairs("b", 20))
        screen = terminal.wait_for("and 13 more")
        assert screen[0] == TITLE.format(name)
        assert ids_of(screen[2:-1]) == [f"b{it}" for it in range(7)]
        assert len(terminal.screen.lines) == HEIGHT
        write_list(service, path, make_pairs("c", 8))
        screen = terminal.wait_for(":c7 ")
        assert ids_of(screen[2:]) == [f"c{it}" for it in range(8)]
        # The last list is complete, also the lines that the screen has no room for.
        write_list(service, path, make_pairs("d", 25))
        assert terminal.wait_for_end() == 0
    *lines, last = terminal.screen.lines
    assert (lines[0], last) == (TITLE.format(name), "")
    assert ids_of(lines[2:]) == [f"d{it}" for it in range(25)]
