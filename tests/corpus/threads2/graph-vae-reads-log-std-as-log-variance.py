# /// case
# title = "KL term reads as log-variance what the sample reads as log-std"
# category = "loss"
# kind = "kl-parametrisation-mismatch"
# severity = "warning"
# names = ["kl_loss", "logstd", "logvar"]
# symptom = "the KL term is not that of the distribution sampled from"
# symptom_check = "abs(kl.item() - exact.item()) > 1e-3 * exact.item()"
# cause = "one tensor is read as log-std and as log-variance"
# fix = "1 + 2 logstd - mu² - exp(logstd)²"
# evidence = [
#     { url = "https://github.com/pyg-team/pytorch_geometric/pull/1368", title = "On the computation of KL divergence for graph VAE" },
# ]
# ///
import torch
import torch.nn as nn

MAX_LOGSTD = 10


class VariationalGCNEncoder(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        self.shared = nn.Linear(d_in, 2 * d_out)
        self.lin_mu, self.lin_logstd = nn.Linear(2 * d_out, d_out), nn.Linear(2 * d_out, d_out)

    def forward(self, x, adj):
        h = torch.relu(adj @ self.shared(x))
        return adj @ self.lin_mu(h), adj @ self.lin_logstd(h)


class VGAE(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def reparametrize(self, mu, logstd):
        return mu + torch.randn_like(logstd) * torch.exp(logstd)  #! also

    def encode(self, x, adj):
        self.mu, self.logvar = self.encoder(x, adj)
        self.logvar = self.logvar.clamp(max=MAX_LOGSTD)
        return self.reparametrize(self.mu, self.logvar)  #! also

    def kl_loss(self):
        mu, logvar = self.mu, self.logvar
        return -0.5 * torch.mean(torch.sum(1 + logvar - mu**2 - logvar.exp(), dim=1))  #- here
#+         return -0.5 * torch.mean(torch.sum(1 + 2 * logvar - mu**2 - logvar.exp() ** 2, dim=1))


torch.manual_seed(74)
adj = (torch.rand(15, 15) < 0.2).float()
adj = ((adj + adj.T + torch.eye(15)) > 0).float()
norm = adj / adj.sum(1, keepdim=True)
x = torch.randn(15, 6)
model = VGAE(VariationalGCNEncoder(6, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(10):
    z = model.encode(x, norm)
    recon = nn.functional.binary_cross_entropy_with_logits(z @ z.T, adj)
    kl = model.kl_loss()
    loss = recon + kl / 15
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
drawn = torch.distributions.Normal(model.mu, model.logvar.exp())
exact = torch.distributions.kl_divergence(drawn, torch.distributions.Normal(0.0, 1.0)).sum(1).mean()
print(kl.item(), exact.item())
