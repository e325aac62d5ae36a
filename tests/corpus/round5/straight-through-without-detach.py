# /// case
# title = "The straight-through sum detaches nothing"
# category = "loss"
# kind = "straight-through-error"
# kinds_also_ok = ["zero-gradient", "missing-detach"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["quantized", "inputs"]
# symptom = "the reconstruction trains the codebook, and not the encoder"
# symptom_check = "encoder_reach.abs().max().item() < 1e-7"
# cause = "inputs + (quantized - inputs) is just quantized"
# fix = "detach the difference"
# evidence = [
#     { url = "https://github.com/NTU-AIoT-Lab/EfficientFi/issues/4", title = "Inconsistency Between Quantization Loss Implementation and Paper Description" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F


class Quantize(nn.Module):
    def __init__(self, n_codes, dim, commitment_cost):
        super().__init__()
        self._embedding = nn.Embedding(n_codes, dim)
        self._embedding.weight.data.uniform_(-1 / n_codes, 1 / n_codes)
        self._commitment_cost = commitment_cost

    def forward(self, inputs):
        indices = torch.cdist(inputs, self._embedding.weight).argmin(1)
        quantized = self._embedding(indices)
        e_latent_loss = F.mse_loss(quantized.detach(), inputs)
        q_latent_loss = F.mse_loss(quantized, inputs.detach())
        loss = q_latent_loss + self._commitment_cost * e_latent_loss
        quantized = inputs + (quantized - inputs)  #- here
#+         quantized = inputs + (quantized - inputs).detach()
        return loss, quantized


class EfficientFi(nn.Module):
    """Compresses CSI frames for recognition and reconstruction."""

    def __init__(self, csi=30, dim=8, classes=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(csi, 24), nn.ReLU(), nn.Linear(24, dim))
        self.vq = Quantize(32, dim, 0.25)
        self.decoder = nn.Sequential(nn.Linear(dim, 24), nn.ReLU(), nn.Linear(24, csi))
        self.classifier = nn.Linear(dim, classes)

    def forward(self, x):
        vq_loss, q = self.vq(self.encoder(x))
        return vq_loss, self.decoder(q), self.classifier(q)  #! also


torch.manual_seed(59)
model = EfficientFi()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    x, label = torch.randn(32, 30), torch.randint(0, 4, (32,))
    vq_loss, recon, logits = model(x)
    task = F.mse_loss(recon, x) + F.cross_entropy(logits, label)
    encoder_reach = torch.autograd.grad(task, model.encoder[0].weight, retain_graph=True)[0]
    loss = vq_loss + task
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, vq_loss.item(), task.item())
