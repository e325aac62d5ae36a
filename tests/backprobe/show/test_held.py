"""What the report says of graphs that grow or are still held, and of steps that went wrong; else nothing."""

from __future__ import annotations

import pytest

from backprobe.record import Growth, Retention, Step
from backprobe.show.formats import terminal_report
from tests.backprobe.show.records import judgement, two_leaves


def growth(*alive: int) -> tuple[Growth, ...]:
    return tuple(Growth(call=0, moment=at, live_nodes=nodes, site=2) for at, nodes in enumerate(alive))


def held_root(moment: int, **more: object) -> Retention:
    fields = {"root": 2, "state": "held", "held_nodes": 2, "held_bytes": 2048, "site": 2, "name": "loss", **more}
    return Retention(moment=moment, **fields)  # type: ignore[arg-type] the test gives the fields by name


def render_report(**changes: object) -> str:
    return terminal_report.render(two_leaves(**changes), judgement())


def test_a_graph_that_grows_is_said_with_its_line_and_the_name_that_keeps_it() -> None:
    said = render_report(growth=growth(10, 17, 24, 31, 38), retentions=(held_root(3, holders=("global running",)),))
    assert "line 4  the graph grew from 10 to 38 nodes in 4 calls; held by `global running`" in said


@pytest.mark.parametrize("alive", [(10, 17, 24), (10, 10, 10, 10, 10), (1, 2, 3, 4, *[4] * 9), (1, 5, 1, 5, 1, 5)])
def test_a_graph_that_does_not_keep_growing_is_not_spoken_of(alive: tuple[int, ...]) -> None:
    assert "held graphs" not in render_report(growth=growth(*alive))


def test_graphs_that_are_held_at_the_end_stand_together_with_the_holder() -> None:
    end = two_leaves().moments[-1].moment
    rows = tuple(held_root(end, root=root, holders=(f"losses[{root}]",)) for root in (0, 1, 2))
    assert "line 4  `loss \u00d73` is still held with 2 nodes, 2.0 KiB; held by `losses[2]`" in render_report(
        retentions=rows
    )
    assert "held graphs" not in render_report(
        retentions=(held_root(end), held_root(end, state="freed", holders=("losses[0]",)))
    )


def test_steps_that_went_wrong_are_listed_and_the_others_are_not() -> None:
    steps = [Step(step=at, sampled=False, why="not-sampled") for at in range(3)]
    assert "steps" not in render_report(steps=tuple(steps)).split("\n\n")[-2]
    bad = [
        Step(step=at, sampled=False, why="not-sampled", anomaly="non-finite", grad_norm=float("nan"))
        for at in range(30, 37)
    ]
    said = render_report(steps=(*steps, *bad))
    assert "steps\n  step 30  the norm of its gradients is nan; it was not looked at\n" in said
    assert "... and 2 more steps" in said
    assert "step 2 " not in said
