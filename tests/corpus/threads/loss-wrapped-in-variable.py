# /// case
# title = "loss = Variable(loss.data, requires_grad=True), from an old tutorial"
# category = "assignment-cut"
# kind = "requires-grad-forced-on-loss"
# kinds_also_ok = ["graph-break-rebuild", "requires-grad-flag-on-nonleaf", "step-without-gradient", "graph-break-detach"]
# severity = "warning"
# names = ["Variable", "loss"]
# symptom = "backward() runs, and every parameter's grad is None"
# symptom_check = "all(p.grad is None for p in model.parameters())"
# cause = "the wrapped loss is a new leaf"
# fix = "call backward on the loss"
# evidence = [
#     { url = "https://github.com/speechbrain/speechbrain/issues/735", title = "element 0 of tensors does not require grad and does not have a grad_fn" },
#     { url = "https://github.com/huggingface/torchMoji/issues/21", title = "loss don't go down when finetune and about requires_grad option in backward()" },
# ]
# ///
import torch
from torch import nn
from torch.autograd import Variable

torch.manual_seed(1)
model = nn.Sequential(nn.Linear(7, 12), nn.ReLU(), nn.Linear(12, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)


def train_epoch(loader):
    model.train()
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss = Variable(loss.data, requires_grad=True)  #- here
        loss.backward()  #! also
        optimizer.step()
        running += loss.item()
    return running / len(loader)


loader = [(torch.randn(16, 7), torch.randint(0, 2, (16,))) for _ in range(6)]
for epoch in range(4):
    print(epoch, train_epoch(loader))
