# /// case
# category = "gradient"
# kind = "missing-zero-grad"
# severity = "warning"
# names = ["opt"]
# ///
#-
import torch
from torch import nn

torch.manual_seed(0)


class Trainer:
    def __init__(self, model: nn.Module, lr: float) -> None:
        self.model = model
        self.opt = torch.optim.Adam(model.parameters(), lr=lr)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        self.opt.zero_grad  #- here
#+         self.opt.zero_grad()
        loss = nn.functional.mse_loss(self.model(x), y)
        loss.backward()  #! also
        self.opt.step()
        return loss.item()


def main() -> None:
    trainer = Trainer(nn.Linear(4, 1), 1e-2)
    for _ in range(5):
        x = torch.randn(8, 4)
        print(trainer.step(x, x.sum(1, keepdim=True)))


main()
