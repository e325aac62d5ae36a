# /// case
# title = "Frozen batch norms are put back into training mode at each epoch"
# category = "mode"
# kind = "frozen-batch-norm-moves"
# severity = "warning"
# names = ["freeze", "train", "BatchNorm1d", "eval"]
# symptom = "the statistics of the frozen norms move"
# symptom_check = "model.norms[0].running_mean.any().item()"
# cause = "model.train() reaches every submodule"
# fix = "eval() for them after each train()"
# evidence = [
#     { url = "https://github.com/pgniewko/gt-pyg/issues/112", title = "`freeze()` BatchNorm eval mode is reset by the next model.train()" },
#     { url = "https://github.com/poppinace/indexnet_matting/issues/35", title = "freeze_bn seems to be an invalid option" },
# ]
# ///
import torch
import torch.nn as nn


class GraphEncoder(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.lift = nn.Linear(5, width)
        self.convs = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(2))
        self.heads = nn.Linear(width, 1)
        self._frozen = []

    def forward(self, x, adj):
        h = self.lift(x)
        for conv, norm in zip(self.convs, self.norms):
            h = h + torch.relu(norm(conv(adj @ h)))
        return self.heads(h)

    def freeze(self, *modules):
        for module in modules:
            for p in module.parameters():
                p.requires_grad = False
            for m in module.modules():
                if isinstance(m, nn.BatchNorm1d):
                    m.eval()
            self._frozen.append(module)

    def get_frozen_status(self):
        return bool(self._frozen)


def finetune(model, data, epochs):
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    for epoch in range(epochs):
        model.train()  #! here
#+         for norm in model.norms:
#+             norm.eval()
        for x, adj, y in data:
            loss = nn.functional.mse_loss(model(x, adj), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(80)
model = GraphEncoder()
model.freeze(model.lift, model.convs, model.norms)  #! here
data = [(torch.randn(10, 5) + 2, (torch.rand(10, 10) < 0.3).float(), torch.randn(10, 1)) for _ in range(3)]
print(finetune(model, data, 2), model.get_frozen_status())
