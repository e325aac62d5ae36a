"""Tensors by which the compiled core learns where this torch keeps what it reads of a plain one (its `layout.c`).

1. They are made to differ in everything that is looked for, so that no other place holds the same by chance.
2. Nothing of autograd runs: no sequence number is used, no random number drawn.
"""

from __future__ import annotations

from typing import Any, Final

import torch

_SHAPES: Final = ((), (3,), (5, 7), (2, 3, 4), (2, 3, 5, 7), (3, 2, 5, 2, 7), (11, 13))
_DTYPES: Final = (
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128, torch.int64,
    torch.int32, torch.int16, torch.int8, torch.uint64, torch.uint32, torch.uint16, torch.uint8, torch.bool,
)  # fmt: skip
_HOST: Final = torch.device("cpu")


def learn(native: Any) -> str:
    """Let the core learn; what it did not find, "" if it found all. Where it did not, attributes serve."""
    with torch.inference_mode(False), torch.no_grad():
        return str(
            native.learn_layout([(tensor, str(tensor.dtype)[6:]) for tensor in _plain()], _build_unusual_tensors())
        )


def _plain() -> list[torch.Tensor]:
    """Plain tensors: shapes, strides, offsets, versions, storages, dtypes and flags."""
    made = [torch.empty(shape, dtype=torch.float32, device=_HOST) for shape in _SHAPES]
    made += [torch.empty((2, index + 2), dtype=dtype, device=_HOST) for index, dtype in enumerate(_DTYPES)]
    made += [
        made[-1][1:, 1:],
        made[2][1:],
        made[3].transpose(0, 2)[:, 1:],
        made[4][1, 1:],
        made[5].permute(4, 2, 0, 1, 3),
    ]
    for index, tensor in enumerate(made[:5]):
        for _ in range(2 * index + 1):
            tensor.fill_(0)
    made += [torch.empty((2, width), dtype=torch.float32, device=_HOST, requires_grad=True) for width in (1, 9)]
    made.append(torch.nn.Parameter(torch.empty((4, 4), dtype=torch.float32, device=_HOST)))
    return made


def _build_unusual_tensors() -> list[torch.Tensor]:
    """Tensors that begin like plain ones and are none: what they hold is lazy, elsewhere, or not theirs to read.

    The first is an inference tensor: what its keys lack are those of autograd.
    """
    with torch.inference_mode():
        others = [torch.empty(3, device=_HOST)]
    lazy = torch.empty(3, dtype=torch.complex64, device=_HOST).conj()
    others += [lazy, lazy.imag, torch.empty(3, device="meta")]
    zero = getattr(torch, "_efficientzerotensor", None)
    if zero is not None:
        others.append(zero((3,), device=_HOST))
    return others
