# /// case
# category = "graph"
# kind = "graph-carried-across-steps"
# severity = "error"
# names = ["state", "memory"]
# ///
#-
from typing import NamedTuple

import torch
from torch import Tensor, nn


class State(NamedTuple):
    memory: Tensor
    clock: int


class Cell(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.write = nn.Bilinear(width, width, width)
        self.read = nn.Linear(width, 1)

    def forward(self, item: Tensor, state: State) -> tuple[Tensor, State]:
        memory = torch.tanh(self.write(item, state.memory))  #! also
        return self.read(memory), State(memory, state.clock + 1)  #! also


def main() -> None:
    torch.manual_seed(5)
    cell = Cell(4)
    opt = torch.optim.Adam(cell.parameters())
    state = State(torch.zeros(3, 4), 0)
    while state.clock < 5:
        guess, state = cell(torch.randn(3, 4), state)  #- here
#+         guess, state = cell(torch.randn(3, 4), state._replace(memory=state.memory.detach()))
        loss = guess.square().mean()
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()


if __name__ == "__main__":
    main()
