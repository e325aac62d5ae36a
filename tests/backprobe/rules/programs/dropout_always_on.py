"""BP613 dropout-always-on."""

BUILT = """
import torch
from torch import nn

class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 2)
        {init}

    def forward(self, x):
        {forward}

tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for x in torch.randn(3, 5, 4):
    optimizer.zero_grad()
    tagger(x).pow(2).mean().backward()
    optimizer.step()
{mode}
with torch.no_grad():
    print(tagger(torch.ones(2, 4)))
"""


def built(forward: str, *, init: str = "pass", mode: str = "tagger.eval()") -> str:
    """A module that drops, trained and then asked for a prediction."""
    return BUILT.format(forward=forward, init=init, mode=mode)


PROGRAMS = {
    "built in forward": built("return self.out(nn.Dropout(0.4)(x))  # <- BP613"),
    "built in forward, called in another statement": built("""drop = nn.Dropout(0.4)  # <- BP613
        return self.out(drop(x))"""),
    "an attribute follows the mode": built("return self.out(self.drop(x))", init="self.drop = nn.Dropout(0.4)"),
    "built in forward, of the module's own mode": built("return self.out(nn.Dropout(0.4).train(self.training)(x))"),
    "dropped on purpose by a switch of its own": built("return self.out(nn.Dropout(0.4).train()(x))"),
    "never in eval mode": built("return self.out(nn.Dropout(0.4)(x))", mode="pass").replace(
        "ones(2, 4)))", "ones(2, 4)))  # <- BP612"
    ),
    "built in forward, and no dropout": built("return nn.Softplus()(self.out(x))"),
}
