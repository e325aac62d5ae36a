# /// case
# title = "Batch generator yields from inside a no_grad block"
# category = "graph-break"
# kind = "grad-mode-left-off"
# kinds_also_ok = ["forward-under-no-grad"]
# severity = "error"
# names = ["no_grad", "frozen_features", "yield"]
# difficulty = "hard"
# symptom = "RuntimeError at loss.backward(): element 0 of tensors does not require grad"
# raises = "RuntimeError"
# raises_message = "does not require grad and does not have a grad_fn"
# cause = "the grad mode is thread-wide; while the generator is suspended inside the with-block the loop body of the consumer runs without gradients"
# fix = "leave the no_grad block before yielding"
# evidence = [{ url = "https://github.com/pytorch/pytorch/pull/49017" }, { url = "https://github.com/pytorch/pytorch/pull/31792" }]
# ///
"""Head training on features of a frozen trunk, streamed by a generator."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader(n=96, batch=24):
    x = torch.randn(n, 15)
    y = (x[:, :5].sum(1) > x[:, 5:10].sum(1)).long()
    return DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True)


def frozen_features(trunk, loader):
    trunk.eval()
    for x, y in loader:
        with torch.no_grad():  #! here
            h = trunk(x)  #! also
            yield h, y  #- here
#+         yield h, y


def fit_head(trunk, head, loader, epochs):
    opt = torch.optim.SGD(head.parameters(), lr=0.2)
    criterion = nn.CrossEntropyLoss()
    for _ in range(epochs):
        for h, y in frozen_features(trunk, loader):  #! also
            loss = criterion(head(h), y)  #! also
            opt.zero_grad()
            loss.backward()  #! also
            opt.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    trunk = nn.Sequential(nn.Linear(15, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
    head = nn.Linear(32, 2)
    print("loss", fit_head(trunk, head, make_loader(), epochs=3))
