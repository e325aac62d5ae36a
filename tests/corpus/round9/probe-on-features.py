# /// case
# title = "The encoder is to be frozen by module.requires_grad = False, which only makes an attribute"
# category = "flags"
# kind = "requires-grad-set-on-module"
# kinds_also_ok = ["freeze-has-no-effect", "requires-grad-attribute-of-module", "encoder-not-frozen"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["requires_grad", "encoder", "linear_probe"]
# symptom = "the encoder goes on training in the probe, which then does not measure its features"
# symptom_check = "not torch.equal(encoder(data), features)"
# cause = "An nn.Module has no property requires_grad: the assignment makes a plain attribute, and the parameters stay as they are."
# fix = "encoder.requires_grad_(False)"
# ///
import torch
from torch import nn
import torch.nn.functional as F


def make_encoder():
    return nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))


def corrupt(x, share=0.3):
    return x * (torch.rand_like(x) > share)


def pretrain(encoder, data, epochs=2):
    decoder = nn.Linear(16, 12)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
    for _ in range(epochs):
        for batch in data.split(50):
            loss = F.mse_loss(decoder(encoder(corrupt(batch))), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def linear_probe(encoder, data, labels, epochs=5):
    encoder.requires_grad = False  #- here
#+     encoder.requires_grad_(False)
    model = nn.Sequential(encoder, nn.Linear(16, int(labels.max()) + 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  #! also
    for _ in range(epochs):
        for rows in torch.randperm(len(data)).split(50):
            loss = F.cross_entropy(model(data[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()  #! also
            optimizer.step()  #! also
    with torch.no_grad():
        return (model(data).argmax(1) == labels).float().mean().item()


torch.manual_seed(19)
labels = torch.randint(0, 4, (150,))
data = torch.randn(4, 12)[labels] + 0.7 * torch.randn(150, 12)
encoder = make_encoder()
print("pretraining", pretrain(encoder, data))
features = encoder(data).detach()
print("probe accuracy", linear_probe(encoder, data, labels))
