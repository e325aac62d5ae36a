"""Each kind of view is one in the record: of its base, in its memory; a copy is none. Beside what torch says."""

from __future__ import annotations

import pytest
import torch

from tests.backprobe.capture.in_process import recorded

VIEWS = (
    "x.view(6)", "x.view(torch.int32)", "x.reshape(6)", "x.t()", "x.T", "x.mT", "x.transpose(0, 1)", "x.permute(1, 0)",
    "x[0]", "x[:, 1:]", "x[None]", "x[..., 0]", "x.select(0, 1)", "x.narrow(1, 0, 2)", "x.unbind()[1]", "x.split(1)[0]",
    "x.chunk(2)[1]", "x.diagonal()", "x.expand(4, 2, 3)", "x.expand_as(x)", "x.squeeze()", "x.unsqueeze(0)",
    "x.flatten()", "x.unflatten(1, (3, 1))", "x.movedim(0, 1)", "x.swapaxes(0, 1)", "x.unfold(1, 2, 1)",
    "x.as_strided((2,), (1,))", "x.view_as(x)", "torch.view_as_real(torch.view_as_complex(x.view(3, 2)))", "x.detach()",
    "x.data",
)  # fmt: skip
COPIES = ("x.clone()", "x.t().contiguous()", "x.t().reshape(6)", "x[[0, 1]]", "x[x > 0]", "x.repeat(1, 1)", "x + 0")


@pytest.fixture(scope="module")
def record():
    lines = [f"v{number} = {text}" for number, text in enumerate((*VIEWS, *COPIES))]
    return recorded(
        "import torch\nx = torch.arange(1.0, 7.0).reshape(2, 3)\nbase = x._base\n" + "\n".join(lines) + "\n"
    )


def row(record, name):
    (number,) = {binding.tensor for binding in record.bindings if binding.name == name}
    return next(tensor for tensor in record.tensors if tensor.tensor == number)


@pytest.mark.parametrize("number", range(len(VIEWS)), ids=VIEWS)
def test_a_view_is_of_its_base_and_in_its_memory(record, number):
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    value = eval(VIEWS[number], {"x": x, "torch": torch})
    base, found = row(record, "base"), row(record, f"v{number}")
    assert found.storage == base.storage
    assert (found.view_of == base.tensor) is (value._base is x._base)
    assert (found.view_of is None) is (not value._is_view())
    assert (found.shape, found.stride, found.storage_offset) == (
        tuple(value.shape), value.stride(), value.storage_offset(),
    )  # fmt: skip


@pytest.mark.parametrize("number", range(len(COPIES)), ids=COPIES)
def test_a_copy_has_memory_of_its_own(record, number):
    found = row(record, f"v{len(VIEWS) + number}")
    assert found.view_of is None
    assert found.storage != row(record, "base").storage
