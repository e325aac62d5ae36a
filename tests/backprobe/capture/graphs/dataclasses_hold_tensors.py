from dataclasses import InitVar, dataclass, field
from typing import ClassVar

import torch

torch.manual_seed(0)


@dataclass
class State:
    loss: torch.Tensor | None
    w: torch.Tensor
    most: ClassVar[int] = 3
    start: InitVar[int] = 1
    past: list = field(default_factory=list)

    def scaled(self):
        return self.w * 2


@dataclass(slots=True, frozen=True)
class Pair:
    loss: torch.Tensor
    other: State


@dataclass
class Late:
    scaled: torch.Tensor = field(init=False)


def turn(given):
    inner = State(loss=None, w=given.w * 3)
    inner.loss = inner.w.sum()
    return Pair(inner.loss, inner)


s = State(loss=torch.zeros(()), w=torch.randn(3, requires_grad=True), past=[torch.ones(2)])
late = Late()
late.scaled = s.scaled()
pair = turn(s)
pair.loss.backward()
for step in [State(loss=None, w=torch.ones(2, requires_grad=True)) for _ in range(30)]:
    (step.w * 2).sum().backward()
