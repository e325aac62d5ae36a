"""Errors inside Backprobe's code: the program's own call gets its error, a call by Backprobe never shows."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from backprobe.capture.torch_access.fence import Guard
from backprobe.capture.torch_access.torch_internals import Untold, is_answered_by_user, user_not_asked


class Refuses(torch.Tensor):
    """Raises whatever it is asked."""

    @staticmethod
    def __new__(cls) -> Any:
        return torch.Tensor._make_wrapper_subclass(cls, (4, 3), dispatch_sizes_strides_policy="sizes")  # type: ignore[attr-defined]  # not in its stub

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise ValueError("asked")


def guard() -> Guard:
    """A fence for which this file is the program's, and nothing else."""
    return Guard(lambda path: path == __file__)


def test_an_error_of_the_class_that_a_read_of_ours_asked_is_kept_inside() -> None:
    fence, tensor = guard(), Refuses()
    assert fence.run(torch.Tensor.size, tensor) is None
    assert fence.errors == 1
    assert fence.first is not None
    assert "asked" in fence.first


def test_an_error_of_a_handler_that_came_up_inside_is_the_programs() -> None:
    fence = guard()

    def handler() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        fence.run(handler)
    assert fence.errors == 0


def test_a_class_is_not_asked_where_it_must_not_be() -> None:
    tensor = Refuses()
    assert is_answered_by_user(tensor)
    with user_not_asked(), pytest.raises(Untold):
        tensor.size()
    with pytest.raises(ValueError, match="asked"):
        tensor.size()


def test_torchs_own_classes_are_asked() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    assert not is_answered_by_user(nested)
    assert not is_answered_by_user(torch.nn.Parameter(torch.ones(2)))
