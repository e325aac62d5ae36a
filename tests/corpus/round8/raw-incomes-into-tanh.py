# /// case
# title = "Columns with values in the ten thousands go into tanh units as they are"
# category = "scale"
# kind = "unscaled-input"
# kinds_also_ok = ["saturated-activation", "vanishing-gradient", "missing-normalisation"]
# severity = "warning"
# names = ["features", "tanh", "standardise"]
# symptom = "the first layer's gradient is zero"
# symptom_check = "net.layers[0].weight.grad.norm().item() < 1e-6"
# cause = "The first layer's outputs are in the thousands, where the derivative of tanh is zero in floating point."
# fix = "standardise the columns"
# ///
import torch
import torch.nn as nn


def households(n):
    income = 20000 + 60000 * torch.rand(n)
    savings = 300000 * torch.rand(n)
    rent = 6000 + 0.25 * income + 2000 * torch.randn(n)
    year = torch.randint(1940, 2005, (n,)).float()
    score = 2 * income / 80000 + savings / 300000 - rent / 25000
    return torch.stack([income, savings, rent, year], dim=1), (score > 0.9).float()


def standardise(table, mean, deviation):
    return (table - mean) / deviation


class CreditNet(nn.Module):
    def __init__(self, columns=4, width=20):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(columns, width), nn.Tanh(),  #! also
            nn.Linear(width, width), nn.Tanh(),
            nn.Linear(width, 1),
        )

    def forward(self, table):
        return self.layers(table).squeeze(1)


def train(net, table, label, epochs=6):
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(epochs):
        for rows in torch.randperm(len(table)).split(40):
            loss = criterion(net(table[rows]), label[rows])  #! also
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


torch.manual_seed(65)
table, label = households(160)  #! here
mean, deviation = table.mean(0), table.std(0)  #! also
net = CreditNet()
train(net, table, label)  #- here
#+ train(net, standardise(table, mean, deviation), label)
with torch.no_grad():
    fresh, truth = households(200)
    print(((net(fresh) > 0) == truth.bool()).float().mean().item())  #- also
#+     print(((net(standardise(fresh, mean, deviation)) > 0) == truth.bool()).float().mean().item())
