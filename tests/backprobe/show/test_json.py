"""What machines read."""

import json

from backprobe.record import Statistics
from backprobe.show.formats import json as machine
from tests.backprobe.show.records import finding, judgement, two_leaves


def test_the_report_names_tensors_calls_and_findings() -> None:
    report = json.loads(machine.render(two_leaves(), judgement(finding()), script="train.py"))
    assert report["schema"] == "backprobe.report/1"
    assert [(row["name"], row["line"], row["is_leaf"], row["gradient"]) for row in report["tensors"]] == [
        ("w", 2, True, "[1, 1]"),
        ("x", 3, True, None),
        ("loss", 4, False, None),
    ]
    assert report["tensors"][1]["why_none"] == {
        "verdict": "requires-grad-false",
        "line": 3,
        "text": "it does not require grad",
    }
    assert report["backward_calls"][0]["nodes_freed"] == 1
    (found,) = report["findings"]
    assert found["schema"] == "backprobe.finding/1"
    assert found["ruleset"] == "rs_0"
    assert found["location"] == {
        "path": "train.py",
        "region": {"start_line": 2, "start_col": 5, "end_line": 2, "end_col": 37},
        "text": "w = torch.ones(2, requires_grad=True)",
    }
    assert found["suppressed"] is None


def test_no_number_that_json_cannot_say_is_written() -> None:
    record = two_leaves(small_values=())
    last = record.snapshots[1]
    import msgspec

    odd = msgspec.structs.replace(last, grad_stats=Statistics(norm=float("nan")))
    shown = machine.render(
        two_leaves(small_values=(), snapshots=(record.snapshots[0], odd, *record.snapshots[2:])),
        judgement(),
        script="x",
    )
    assert json.loads(shown)["tensors"][0]["gradient"] == "norm nan"
