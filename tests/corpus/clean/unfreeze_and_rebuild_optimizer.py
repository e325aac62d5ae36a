import torch
from torch import nn

torch.manual_seed(0)
backbone = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
checkpoint = {k: v.clone() for k, v in backbone.state_dict().items()}
backbone.load_state_dict(checkpoint)
model = nn.Sequential(backbone, nn.Linear(16, 2))
X, Y = torch.randn(64, 10), torch.randint(0, 2, (64,))
loss_fn = nn.CrossEntropyLoss()


def run(optimizer, epochs):
    for epoch in range(epochs):
        model.train()
        for i in torch.randperm(64).split(16):
            optimizer.zero_grad()
            loss = loss_fn(model(X[i]), Y[i])
            loss.backward()
            optimizer.step()
        print("lr", optimizer.param_groups[0]["lr"], "loss", loss.item())


for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-3)
run(optimizer, 2)
for p in backbone.parameters():
    p.requires_grad = True
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
run(optimizer, 2)
