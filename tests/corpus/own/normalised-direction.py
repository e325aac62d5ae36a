# /// case
# category = "leaf"
# kind = "grad-read-on-nonleaf"
# severity = "warning"
# names = ["direction"]
# ///
#-
import torch


def descend(target: torch.Tensor, rounds: int) -> torch.Tensor:
    direction = torch.tensor([3.0, 4.0, 0.0], requires_grad=True)  #-
    direction = direction / direction.norm()  #- here
#+     direction = torch.tensor([3.0, 4.0, 0.0])
#+     direction = (direction / direction.norm()).requires_grad_()
    point = torch.zeros(3)
    for _ in range(rounds):
        gap = ((point + direction) - target).square().sum()
        gap.backward(retain_graph=True)
        point = point - 0.1 * direction.grad  #! also
    return point


goal = torch.tensor([1.0, 0.0, 0.0])
print(descend(goal, 4))
