# /// case
# title = "The reversal is a Module with a backward method"
# category = "function"
# kind = "module-backward-never-called"
# kinds_also_ok = ["gradient-not-reversed"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["GradientReversalLayer", "backward"]
# symptom = "the speaker's gradient is not reversed"
# symptom_check = "torch.dot(reached.flatten(), plain.flatten()) > 0"
# cause = "autograd never calls a Module's backward"
# fix = "an autograd Function"
# evidence = [
#     { url = "https://github.com/hash2430/pitchtron/issues/3", title = "Does gradient reversal layer work?" },
#     { url = "https://github.com/zou-longkun/GAST/issues/3", title = "About gradient reverse layer" },
# ]
# ///
import torch
import torch.nn as nn
import torch.nn.functional as F
#+
#+
#+ class Reverse(torch.autograd.Function):
#+     @staticmethod
#+     def forward(ctx, x, scale):
#+         ctx.scale = scale
#+         return x.view_as(x)
#+
#+     @staticmethod
#+     def backward(ctx, grad):
#+         return -ctx.scale * grad, None


class GradientReversalLayer(nn.Module):  #! here
    def __init__(self, scale=1.0):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x  #-
#-
    def backward(self, grad):  #- here
        return -self.scale * grad  #-
#+         return Reverse.apply(x, self.scale)


class Tacotronish(nn.Module):
    """A text encoder that should not know the speaker."""

    def __init__(self, symbols=30, dim=16, speakers=3, mels=10):
        super().__init__()
        self.embedding, self.encoder = nn.Embedding(symbols, dim), nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.Linear(dim, mels)
        self.adversary = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, speakers))
        self.grl = GradientReversalLayer()

    def forward(self, text):
        self.hidden = self.encoder(self.embedding(text))[0]
        speaker = self.adversary(self.grl(self.hidden.mean(1)))  #! also
        return self.decoder(self.hidden), speaker


torch.manual_seed(84)
model = Tacotronish()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for it in range(8):
    text, speaker = torch.randint(0, 30, (12, 7)), torch.randint(0, 3, (12,))
    mel = torch.randn(12, 7, 10)
    out, logits = model(text)
    loss_spk = F.cross_entropy(logits, speaker)
    reached = torch.autograd.grad(loss_spk, model.hidden, retain_graph=True)[0]
    loss = F.mse_loss(out, mel) + 0.5 * loss_spk
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
h = model.hidden.detach().requires_grad_(True)
plain = torch.autograd.grad(F.cross_entropy(model.adversary(h.mean(1)), speaker), h)[0]
print(loss.item(), torch.dot(reached.flatten(), plain.flatten()).item())
