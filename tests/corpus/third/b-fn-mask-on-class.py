# /// case
# title = "k-winners function keeps its mask on the class"
# category = "custom-function"
# kind = "custom-function-wrong-gradient"
# severity = "warning"
# severity_by_writer = "error"
# names = ["mask", "KWinners", "backward"]
# difficulty = "hard"
# symptom = "Training runs, gradients of the first layer go through the wrong units; gradcheck of two calls fails."
# symptom_check = "not torch.autograd.gradcheck(lambda a, b: KWinners.apply(a, 2) + 2 * KWinners.apply(b, 2), (torch.tensor([[4., 3., 1., 0.]], dtype=torch.double, requires_grad=True), torch.tensor([[0., 1., 3., 4.]], dtype=torch.double, requires_grad=True)), raise_exception=False)"
# cause = "forward stores the mask in a class attribute instead of ctx; the second call overwrites it before the first call's backward runs."
# fix = "ctx.save_for_backward(mask)."
# evidence = [{ url = "https://docs.pytorch.org/docs/stable/notes/extending.html" }, { url = "https://github.com/pytorch/pytorch/issues/4355" }]
# ///
import torch
from torch import nn


class KWinners(torch.autograd.Function):
    """Keep the k largest activations of each row."""

    @staticmethod
    def forward(ctx, x, k):
        threshold = x.topk(k, dim=1).values[:, -1:]
        mask = (x >= threshold).to(x.dtype)
        KWinners.mask = mask  #- here
#+         ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        return grad * KWinners.mask, None  #- here
#+         return grad * ctx.saved_tensors[0], None


class SparseAutoencoder(nn.Module):
    def __init__(self, n_in=12, width=32, k=8):
        super().__init__()
        self.enc1 = nn.Linear(n_in, width)
        self.enc2 = nn.Linear(width, width)
        self.dec = nn.Linear(width, n_in)
        self.k = k

    def forward(self, x):
        h = KWinners.apply(self.enc1(x), self.k)  #! also
        h = KWinners.apply(self.enc2(h), self.k)  #! also
        return self.dec(h)


torch.manual_seed(0)
basis = torch.randn(4, 12)
model = SparseAutoencoder()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
losses = []
for step in range(60):
    x = torch.randn(64, 4) @ basis
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[0], losses[-1])
