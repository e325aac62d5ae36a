"""Mistakes that torch refuses, each as a program in `mistakes.txt`: its exception becomes the finding of one rule."""

from pathlib import Path

import pytest

from backprobe.rules import judge
from tests.sections import read_sections

EXPECTED = {
    "int_requires_grad": "BP105",
    "int_requires_grad_": "BP105",
    "int_requires_grad_setter": "BP105",
    "set_data_incompatible": "BP105",
    "requires_grad_false_nonleaf": "BP108",
    "requires_grad__false_nonleaf": "BP108",
    "deepcopy_nonleaf": "BP110",
    "retain_grad_no_requires": "BP112",
    "hook_on_no_grad": "BP112",
    "post_acc_hook_nonleaf": "BP112",
    "grad_dtype_mismatch_assign": "BP230",
    "grad_shape_mismatch_assign": "BP230",
    "grad_nontensor_assign": "BP230",
    "custom_fn_wrong_count": "BP240",
    "custom_fn_wrong_shape": "BP241",
    "custom_fn_no_backward": "BP243",
    "custom_fn_instance_call": "BP243",
    "custom_fn_once_differentiable": "BP243",
    "hook_wrong_return": "BP251",
}
"""Program -> rule, of the families leaf and gradient."""

MISTAKES = read_sections(Path(__file__).with_name("mistakes.txt"))


@pytest.mark.parametrize("name", EXPECTED)
def test_a_recorded_mistake_is_found_by_its_rule_and_no_other(name, captured) -> None:
    program = MISTAKES[name]
    record = captured(program)
    assert record.end is not None
    assert record.end.ending == "raised"
    findings = [finding for finding in judge(record).findings if finding.level != "note"]
    assert [(finding.rule.code, finding.level) for finding in findings] == [(EXPECTED[name], "error")]
    lines = program.split("\n")
    assert findings[0].location.region.start_line > lines.index("def mistake():")
