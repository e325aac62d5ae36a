# /// case
# title = "Reentrant checkpoint of the first block with data as only input"
# category = "checkpointing"
# kind = "checkpoint-inputs-without-grad"
# severity = "warning"
# severity_by_writer = "error"
# names = ["checkpoint", "use_reentrant", "stem"]
# difficulty = "easy"
# symptom = "Only a UserWarning (None of the inputs have requires_grad=True); the stem has no gradients and stays random."
# symptom_check = "model.stem.conv.weight.grad is None"
# warns = "None of the inputs have requires_grad=True"
# cause = "With use_reentrant=True the output requires grad only if an input tensor does; the input of the stem is data, so its parameters are cut off."
# fix = "Use use_reentrant=False."
# evidence = [{ url = "https://github.com/ai2cm/ace/pull/1493" }, { url = "https://github.com/huggingface/transformers/issues/21381" }, { url = "https://github.com/mlfoundations/open_clip/issues/573" }]
# ///
"""Memory-saving forward of a stacked convolutional forecaster."""
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class ConvBlock(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv1d(i, o, 3, padding=1)
        self.norm = nn.GroupNorm(2, o)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Forecaster(nn.Module):
    def __init__(self, channels=3, width=12, depth=3, checkpointing=True):
        super().__init__()
        self.stem = ConvBlock(channels, width)
        self.blocks = nn.ModuleList(ConvBlock(width, width) for _ in range(depth))
        self.head = nn.Linear(width, channels)
        self.checkpointing = checkpointing

    def run(self, block, x):
        if self.checkpointing and self.training:
            return checkpoint(block, x, use_reentrant=True)  #- here
#+             return checkpoint(block, x, use_reentrant=False)
        return block(x)

    def forward(self, x):
        x = self.run(self.stem, x)  #! here
        for block in self.blocks:
            x = x + self.run(block, x)
        return self.head(x.mean(-1))


def walk(n, length=20):
    steps = torch.randn(n, 3, length + 1) * 0.3
    path = steps.cumsum(-1)
    return path[..., :-1], path[..., -1]


torch.manual_seed(0)
model = Forecaster()
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(20):
    x, y = walk(32)
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
