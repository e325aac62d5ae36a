# /// case
# title = "Layers frozen in the second phase move on with old momentum"
# category = "flags"
# kind = "frozen-with-stale-gradient"
# kinds_also_ok = ["frozen-parameter-still-updated"]
# severity = "warning"
# names = ["requires_grad", "grad", "momentum"]
# symptom = "fc1 and fc2 move after they were frozen"
# symptom_check = "shift > 0"
# cause = "their zeroed gradients stay, so Adam goes on with its momentum"
# fix = "set their gradients to None (or drop them from the optimizer)"
# evidence = [
#     { url = "https://github.com/facebookresearch/fairseq/issues/4702", title = 'Why parameters are still updated even if I set their requires_grads equal to "False" ? Fairseq transformer' },
#     { url = "https://github.com/tensorflow/swift-apis/issues/421", title = "Problem in unused parameters and momentum based optimizer" },
# ]
# ///
import torch
from torch import nn


class TranslationModel(nn.Module):
    def __init__(self, vocab=30, dim=12):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.fc1 = nn.Linear(dim, 2 * dim)
        self.fc2 = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, tokens):
        h = self.embed(tokens)
        return self.out(h + self.fc2(torch.relu(self.fc1(h))))


def freeze_by_name(model, names):
    for name, param in model.named_parameters():
        if any(n in name for n in names):
            param.requires_grad = False  #! here
#+             param.grad = None
    return model


def run_steps(model, optimizer, steps):
    criterion = nn.CrossEntropyLoss()
    for _ in range(steps):
        src = torch.randint(0, 30, (8, 6))
        loss = criterion(model(src).flatten(0, 1), src.flip(1).flatten())
        optimizer.zero_grad(set_to_none=False)  #! also
        loss.backward()
        optimizer.step()  #! also


torch.manual_seed(16)
model = TranslationModel()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
run_steps(model, optimizer, 5)

freeze_by_name(model, ["fc1", "fc2"])
at_freeze = model.fc1.weight.detach().clone()
run_steps(model, optimizer, 5)
shift = (model.fc1.weight - at_freeze).abs().max().item()
print(shift)
