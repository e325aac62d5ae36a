# /// case
# title = "The class proxies belong to the loss module, and the optimizer has only the encoder's parameters"
# category = "optimizer"
# kind = "parameter-not-in-optimizer"
# kinds_also_ok = ["loss-parameters-not-optimized", "criterion-parameters-missing"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["criterion", "proxies", "optimizer"]
# symptom = "the proxies keep their random start"
# symptom_check = "torch.equal(criterion.proxies, first)"
# cause = "The proxies are parameters of the criterion, and the optimizer is built from the encoder's alone."
# fix = "give criterion.parameters() to the optimizer as well"
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProxyAnchor(nn.Module):
    """Pulls an embedding to the proxy of its class and pushes it from the others."""

    def __init__(self, classes, width, temperature=0.1):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(classes, width))
        self.temperature = temperature

    def forward(self, embedding, label):
        similarity = F.normalize(embedding, dim=1) @ F.normalize(self.proxies, dim=1).T
        return F.cross_entropy(similarity / self.temperature, label)


def build(channels=16, width=8):
    return nn.Sequential(
        nn.Conv1d(1, channels, 5, stride=2), nn.ReLU(),
        nn.Conv1d(channels, channels, 3, stride=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(channels, width),
    )


def main(steps=15):
    encoder = build()
    criterion = ProxyAnchor(6, 8)
    first = criterion.proxies.detach().clone()
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=3e-3, weight_decay=1e-2)  #- here
#+     optimizer = torch.optim.AdamW([*encoder.parameters(), *criterion.parameters()], lr=3e-3, weight_decay=1e-2)
    signal = torch.randn(90, 1, 40)
    label = torch.arange(90) % 6
    for step in range(steps):
        rows = torch.randperm(90)[:30]
        loss = criterion(encoder(signal[rows]), label[rows])
        encoder.zero_grad()
        criterion.zero_grad()
        loss.backward()
        optimizer.step()  #! also
        if step % 5 == 0:
            print(step, loss.item())
    return criterion, first


torch.manual_seed(61)
criterion, first = main()
