"""The program whose records lie beside it, one per version of the format: a row in as many tables as capture fills.

usage: python tests/backprobe/record/versions/made_by.py VERSION

Each file was written once, by the last commit that wrote its version, and is never written again; version 1 by
`made_by.py 1` at commit a9ff8f2, version 2 by `made_by.py 2` at commit 6bd7c0e,
version 3 by `made_by.py 3` at commit f39e4621, version 4 by `made_by.py 4` at commit 7c00c7ec.
"""

import sys
import warnings
from pathlib import Path

PROGRAM = """\
import warnings
import torch
from torch import nn
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.head = nn.Linear(4, 1)
        self.register_buffer("seen", torch.zeros(1))
    def forward(self, x):
        self.seen += 1
        return self.head(torch.relu(self.body(x)))
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for step in range(2):
    optimizer.zero_grad()
    loss = model(torch.ones(2, 3)).pow(2).mean()
    losses.append(loss)
    loss.backward()
    optimizer.step()
if model.head.weight.grad is not None:
    warnings.warn("a warning of the program")
w = torch.tensor([1.0, 2.0], requires_grad=True)
(g,) = torch.autograd.grad((w * w).sum(), w, create_graph=True)
h = w * 2
e = h.exp()
e.add_(1)
try:
    e.sum().backward()
except RuntimeError as error:
    print(error)
(h * h).sum().backward(retain_graph=True)
print(h.grad)
with torch.no_grad():
    w -= 0.1 * w.grad
w.grad = None
sparse = torch.eye(3).to_sparse()
large = torch.zeros(40, 2)
raise SystemExit(3)
"""


def main() -> None:
    """Capture the program and write the record beside this file."""
    from backprobe.capture import run_files

    pieces: list[bytes] = [b"BPREC\x01\n"]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        run_files({"train.py": PROGRAM}, "train.py", (), None, pieces.append)
    path = Path(__file__).with_name(f"version_{int(sys.argv[1])}.bprec")
    path.write_bytes(b"".join(pieces))


if __name__ == "__main__":
    main()
