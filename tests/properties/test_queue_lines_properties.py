"""The line of a Queue: whoever may find room is found, first to last, whatever came and went."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from interlock.admission.queues.lines import QueueLines, lacks_room
from interlock.resources.metadata import Key
from interlock.resources.queue import TASKS, Demand
from support.queue_desk import waits

NAMES = ("a", "b", "c", "d", "e", "f")
#: Few amounts, so that Jobs are alike and rooms are just met; "disk" the Queue may not have.
EACH = st.dictionaries(st.sampled_from(("gpu", "cpu", "disk")), st.sampled_from((1, 2, 3)))
DEMANDS = st.builds(
    lambda tasks, least, each, is_of_pods: Demand(
        queue="blue", tasks=max(tasks, least), least=least, each=each, is_of_pods=is_of_pods
    ),
    st.integers(1, 3),
    st.integers(1, 3),
    EACH,
    st.booleans(),
)
#: Who comes or changes, or goes.
MOVES = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(0, 2), DEMANDS | st.none()), max_size=20
)
ROOM = st.dictionaries(
    st.sampled_from(("gpu", "cpu", TASKS)), st.sampled_from((0, 1, 2, 4, 1000, 3000))
)


@given(moves=MOVES, free=ROOM)
def test_whoever_may_find_room_is_among_the_heads(
    moves: list[tuple[str, int, Demand | None]], free: Mapping[str, int]
) -> None:
    lines = QueueLines()
    for name, priority, demand in moves:
        job = waits(name, NAMES.index(name) + 1, priority=priority)
        lines.update(Key("Job", "default", name), job, demand, ())

    shapes = lines.shapes("blue")
    firsts = sorted((places[0], shape) for shape, places in shapes.items())
    fitting = [(place, shape) for place, shape in firsts if not lacks_room(shape, free)]
    found = [(head.place, head.shape) for head in lines.heads("blue", free)]
    assert [(head.place, head.shape) for head in lines.heads("blue")] == firsts
    assert [one for one in found if not lacks_room(one[1], free)] == fitting
    assert found == sorted(found)
    assert lines.has_room_for_any("blue", free) or not fitting
