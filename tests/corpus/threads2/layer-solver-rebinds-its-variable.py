# /// case
# title = "Descent step binds the name of the variable to a new tensor"
# category = "leaf"
# kind = "leaf-lost-by-rebinding"
# kinds_also_ok = ["grad-read-on-nonleaf", "grad-read-when-none"]
# severity = "error"
# names = ["s_batch", "s"]
# symptom = "TypeError: unsupported operand for float and NoneType in the second epoch"
# raises = "TypeError"
# raises_message = "NoneType"
# cause = "after the first step s_batch is no leaf, so its .grad stays None"
# fix = "detach and set the flag anew, or write in place under no_grad"
# evidence = [
#     { url = "https://github.com/BaiTheBest/SparseLLM/issues/13", title = "How to fix this problem?" },
# ]
# ///
import torch
import torch.nn.functional as F


def prune_columns(weight, sparsity):
    keep = int(weight.shape[1] * (1 - sparsity))
    order = weight.abs().sum(0).argsort(descending=True)
    pruned = torch.zeros_like(weight)
    pruned[:, order[:keep]] = weight[:, order[:keep]]
    return pruned


def solve_activations(up, down, gate_out, target, chunk=8, epochs=4, lr=0.1, gamma=5.0):
    """Gated activations that fit the pruned projection, found by descent for each chunk of tokens."""
    s = gate_out.clone()
    for start in range(0, s.shape[1], chunk):
        cols = slice(start, start + chunk)
        s_batch = s[:, cols].clone().requires_grad_(True)
        for _ in range(epochs):
            recon = F.mse_loss(down @ F.silu(s_batch), target[:, cols])
            prox = F.mse_loss(s_batch, gate_out[:, cols])
            loss_s = gamma * recon + prox
            loss_s.backward()  #! also
            s_batch = s_batch - lr * s_batch.grad  #- here
#+             s_batch = (s_batch - lr * s_batch.grad).detach().requires_grad_(True)
        s[:, cols] = s_batch.detach()
    return s


torch.manual_seed(29)
up, down = torch.randn(12, 6), torch.randn(6, 12)
tokens = torch.randn(6, 16)
dense_out = down @ F.silu(up @ tokens)
up, down = prune_columns(up, 0.3), prune_columns(down, 0.5)
s = solve_activations(up, down, up @ tokens, dense_out)
print(F.mse_loss(down @ F.silu(s), dense_out).item())
