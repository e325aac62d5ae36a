import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class VAE(nn.Module):
    def __init__(self, d=16, h=32, z=4):
        super().__init__()
        self.fc1 = nn.Linear(d, h)
        self.fc21, self.fc22 = nn.Linear(h, z), nn.Linear(h, z)
        self.fc3, self.fc4 = nn.Linear(z, h), nn.Linear(h, d)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def decode(self, z):
        return torch.sigmoid(self.fc4(F.relu(self.fc3(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 16))
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    BCE = F.binary_cross_entropy(recon_x, x.view(-1, 16), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + beta * KLD


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
train = (torch.rand(64, 1, 4, 4) > 0.5).float()
test = (torch.rand(16, 1, 4, 4) > 0.5).float()
for epoch in range(4):
    beta = min(1.0, epoch / 2)
    model.train()
    train_loss = 0
    for batch in train.split(16):
        optimizer.zero_grad()
        recon, mu, logvar = model(batch)
        loss = loss_function(recon, batch, mu, logvar, beta)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for batch in test.split(8):
            recon, mu, logvar = model(batch)
            test_loss += loss_function(recon, batch, mu, logvar, 1.0).item()
    print(f"epoch {epoch} train {train_loss / 64:.3f} test {test_loss / 16:.3f}")
with torch.no_grad():
    print(model.decode(torch.randn(2, 4)).mean())
