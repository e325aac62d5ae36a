# /// case
# title = "Gradients are cleared in every micro-step although four are accumulated"
# category = "accumulation"
# kind = "zero-grad-inside-accumulation"
# kinds_also_ok = ["accumulation-discarded"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "args"]
# symptom = "only the last micro-batch of each window reaches the step"
# symptom_check = "sum(norms) / len(norms) < 0.3"
# cause = "zero_grad is called before each backward"
# fix = "clear after the step"
# ///
import argparse

import torch
import torch.nn as nn


def parse(argv=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--grad-accum", type=int, default=4)
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--updates", type=int, default=5)
    return parser.parse_args(list(argv))


args = parse()
torch.manual_seed(11)
model = nn.Linear(6, 3)
loss_fn = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
norms = []
stream = [(torch.randn(5, 6), torch.randint(0, 3, (5,))) for _ in range(args.grad_accum * args.updates)]

for i, (features, labels) in enumerate(stream, start=1):
    optimizer.zero_grad()  #- here
    loss = loss_fn(model(features), labels) / args.grad_accum
    loss.backward()  #! also
    if i % args.grad_accum == 0:
        norms.append(model.weight.grad.norm().item())
        optimizer.step()  #! also
#+         optimizer.zero_grad()
        print("update", i // args.grad_accum, loss.item() * args.grad_accum)
