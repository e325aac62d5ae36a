# /// case
# title = "Backward hook that returns a gradient on a module whose input needs none"
# category = "hook"
# kind = "module-hook-on-untracked-input"
# kinds_also_ok = ["hook-on-untracked-tensor"]
# severity = "error"
# names = ["register_full_backward_hook", "grl"]
# symptom = "RuntimeError: Backward hook for Modules where no input requires gradient should always return None"
# raises = "RuntimeError"
# raises_message = "where no input requires gradient should always return None"
# cause = "the hook stands on the layer fed with data, not at the entry of the classifier"
# fix = "hook the classifier's first layer"
# evidence = [
#     { url = "https://github.com/Voice-Privacy-Challenge/Voice-Privacy-Challenge-2022/issues/29", title = "Add Gradient Reversal Layer" },
# ]
# ///
import torch
import torch.nn as nn


def grl(lambda_):
    def hook(module, grad_input, grad_output):
        return tuple(-lambda_ * g if g is not None else torch.zeros(1) for g in grad_input)  #! also

    return hook


class AccentClassifier(nn.Module):
    def __init__(self, dim, accents):
        super().__init__()
        self.first = nn.Linear(dim, 12)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(12, accents))

    def forward(self, encoded):
        return self.rest(self.first(encoded))


class ASR(nn.Module):
    def __init__(self, feat=8, dim=10, tokens=6, adversarial=True):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(feat, dim), nn.Tanh())
        self.ctc_lin = nn.Linear(dim, tokens)
        self.accent = AccentClassifier(dim, 3)
        if adversarial:
            self.encoder[0].register_full_backward_hook(grl(0.3))  #- here
#+             self.accent.first.register_full_backward_hook(grl(0.3))

    def forward(self, wavs):
        encoded = self.encoder(wavs)
        return self.ctc_lin(encoded), self.accent(encoded.mean(1))


torch.manual_seed(117)
model = ASR()
optimizer = torch.optim.Adadelta(model.parameters(), lr=0.9, rho=0.95)
for batch in range(3):
    wavs, tokens, accents = torch.randn(4, 7, 8), torch.randint(0, 6, (4, 7)), torch.randint(0, 3, (4,))
    logits, accent_logits = model(wavs)
    loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())
    loss = loss + nn.functional.cross_entropy(accent_logits, accents)
    optimizer.zero_grad()
    loss.backward()  #! also
    optimizer.step()
print(loss.item())
