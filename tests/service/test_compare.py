"""Two runs beside each other, on both databases; alignment by hand-made tensors."""

from __future__ import annotations

import json

import msgspec
import pytest

from backprobe.show.operation_comparison import first_difference, placed_operations
from backprobe.show.run_comparison import PlacedTensor, align, diffs
from tests.backprobe.capture.in_process import recorded


def placed(number, name="h", line=1, **more):
    facts = {
        "fqn": None, "module_call": None, "path": "t.py", "function": "<module>", "is_leaf": False,
        "requires_grad": True, "retains_grad": False, "grad": "not-read", "grad_norm": 1.0, "held_bytes": 0, **more,
    }  # fmt: skip
    return PlacedTensor(tensor=number, name=name, line=line, **facts)


LINES = {"t.py": ["h = x * 2", "h = h + 1", "y = h.sum()"]}


def pairs(a, b, lines_a=LINES, lines_b=LINES):
    return [(pair.a.tensor, pair.b.tensor) for pair in align(a, b, lines_a, lines_b).pairs]


def test_a_line_above_moves_no_tensor():
    moved = {"t.py": ["import torch", *LINES["t.py"]]}
    a = [placed(0, line=1), placed(1, line=2), placed(2, "y", line=3)]
    b = [placed(5, line=2), placed(6, line=3), placed(7, "y", line=4)]
    assert pairs(a, b, LINES, moved) == [(0, 5), (1, 6), (2, 7)]


def test_an_edited_line_finds_its_partner_by_name():
    edited = {"t.py": ["h = (x * 2).detach()", *LINES["t.py"][1:]]}
    a = [placed(0, line=1), placed(1, line=2)]
    b = [placed(0, line=1, is_leaf=True, requires_grad=False), placed(1, line=2)]
    found = align(a, b, LINES, edited)
    assert [(pair.a.tensor, pair.b.tensor) for pair in found.pairs] == [(0, 0), (1, 1)]
    assert found.pairs[0].changed == ("is_leaf", "requires_grad")
    assert found.pairs[1].changed == ()


def test_the_same_line_in_two_modules_stays_apart():
    a = [placed(0, module_call="h.0#0"), placed(1, module_call="h.1#0")]
    b = [placed(0, module_call="h.1#0"), placed(1, module_call="h.0#0")]
    assert sorted(pairs(a, b)) == [(0, 1), (1, 0)]


def test_the_nth_of_a_loop_meets_the_nth_and_the_rest_is_listed():
    a = [placed(number) for number in range(4)]
    b = [placed(number) for number in range(3)]
    found = align(a, b, LINES, LINES)
    assert [(pair.a.tensor, pair.b.tensor) for pair in found.pairs] == [(0, 0), (1, 1), (2, 2)]
    assert [row.tensor for row in found.only_a] == [3]
    assert found.only_b == ()


def test_a_parameter_is_known_by_its_fqn_whatever_its_line():
    a = [placed(0, "w", fqn="net.w", line=1)]
    b = [placed(9, "self.w", fqn="net.w", line=3, path="other.py")]
    assert pairs(a, b) == [(0, 9)]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (1.0, 1.0005, False), (1.0, 1.002, True), (1.002, 1.0, True), (0.0, 0.0, False), (0.0, 1e-9, True),
        (None, 1.0, True), (None, None, False), (float("nan"), 1.0, True), (float("nan"), float("inf"), True),
        (float("nan"), float("nan"), False),
    ],
)  # fmt: skip
@pytest.mark.parametrize("norm", ["grad_norm", "value_norm"])
def test_a_norm_is_told_beyond_rounding(before, after, told, norm):
    (pair,) = align([placed(0, **{norm: before})], [placed(0, **{norm: after})], LINES, LINES).pairs
    assert pair.changed == ((norm,) if told else ())


def test_the_diff_names_files_that_came_and_went():
    found = diffs({"a.py": "x\n", "c.py": "2\n", "same.py": "1\n"}, {"b.py": "y\n", "same.py": "1\n"})
    assert [(file["path"], file["in_a"], file["in_b"]) for file in found] == [
        ("a.py", True, False), ("b.py", False, True), ("c.py", True, False),
    ]  # fmt: skip
    assert found[0]["diff"].splitlines()[-1] == "-x"


def test_a_file_with_another_name_is_known_by_its_text_or_as_the_only_other():
    same = diffs({"a.py": "x\n", "c.py": "2\n"}, {"b.py": "x\n", "d.py": "3\n"})
    assert [(file["path"], file["in_a"], file["in_b"]) for file in same] == [("c.py", True, True)]
    renamed = {"u.py": LINES["t.py"]}
    assert pairs([placed(0)], [placed(7, path="u.py")], LINES, renamed) == [(0, 7)]
    (pair,) = align([placed(0)], [placed(7, path="u.py")], LINES, renamed).pairs
    assert pair.b.path == "u.py", "told as its run calls it"
    assert diffs({"a.py": "x\n" * 6000}, {"a.py": "y\n"})[0]["diff"] is None


def get(site, a, b, status=200):
    answer = site.client.get(f"/v1/compare?a={a}&b={b}")
    assert answer.status_code == status, answer.text
    return answer.json


def test_a_run_differs_in_nothing_from_itself(site):
    run = site.finished()
    told = get(site, run, run)
    assert (told["findings"]["new"], told["findings"]["fixed"], told["findings"]["same"]) == (0, 0, 1)
    assert (told["tensors"]["aligned"], told["tensors"]["changed"], told["source"]) == (5, 0, [])


def test_a_mended_program_is_told_as_fixed_with_its_diff(site, samples):
    first = site.finished()
    text = samples.TUTORIAL.replace("print(z.grad)\n", "print(W.grad)\n")
    record = samples.tutorial(text=text)
    mended = msgspec.structs.replace(record, grad_reads=())
    second = site.finished(mended, body={"source": text})
    told = get(site, first, second)
    assert (told["findings"]["new"], told["findings"]["fixed"]) == (0, 1)
    assert told["findings"]["in_a"][0]["rule"]["code"] == "BP101"
    (changed,) = told["source"]
    assert changed["diff"].splitlines()[-2:] == ["-print(z.grad)", "+print(W.grad)"]


def test_a_gradient_that_turned_nan_is_a_change(site, samples):
    told = get(site, site.finished(), site.finished(samples.tutorial(nan=True)))
    changed = {change["b"]["name"]: change for change in told["tensors"]["changes"]}
    assert changed["W"]["changed"] == ["grad_norm"]
    assert changed["W"]["b"]["grad_norm"] == "NaN"


PROGRAM = """\
import torch
w = torch.ones(2, 3, requires_grad=True)
for _ in range(2):
    h = {operation}
    h.sum().backward()
"""


@pytest.mark.parametrize(
    ("operation", "function"),
    [("torch.relu(w * 2)", None), ("torch.sigmoid(w * 2)", "torch.sigmoid"), ("torch.relu(w[:1] * 2)", "[]")],
)
def test_the_service_finds_the_operation_that_two_record_files_differ_in(site, operation, function):
    programs = [PROGRAM.format(operation=text) for text in ("torch.relu(w * 2)", operation)]
    records = [recorded(program) for program in programs]
    runs = [site.finished(record, body={"source": text}) for record, text in zip(records, programs, strict=True)]
    operations = get(site, *runs)["operations"]
    assert operations["first"] == json.loads(json.dumps(first_difference(*map(placed_operations, records))))
    assert (operations["in_a"], operations["in_b"]) == tuple(len(record.operations) for record in records)
    assert function == (operations["first"] and operations["first"]["b"]["function"])
    page = site.client.get(f"/compare?a={runs[0]}&b={runs[1]}").text
    assert ("The first operation that differs" in page) == (function is not None)


def test_a_run_that_has_not_ended_or_is_unknown_is_refused(site):
    run, queued = site.finished(), site.submit()
    refused = get(site, run, queued, 409)
    assert (refused["code"], refused["errors"][0]["parameter"]) == ("run-not-ended", "b")
    assert get(site, run, "run_01JD8PZ4T8W2K5C7Q9R3M6X1BA", 404)["code"] == "not-found"
    assert get(site, run, "x", 422)["errors"][0]["parameter"] == "b"
