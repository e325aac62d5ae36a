import torch
from torch import nn
import torch.nn.functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class DroppableBlock(nn.Module):
    """In training the whole block is left out now and then; its parameters get no gradient in that step."""

    def __init__(self, dim, survival):
        super().__init__()
        self.survival = survival
        self.norm = nn.LayerNorm(dim)
        self.body = nn.Sequential(nn.Linear(dim, 2 * dim), nn.SiLU(), nn.Linear(2 * dim, dim))
        nn.init.zeros_(self.body[-1].weight)
        nn.init.zeros_(self.body[-1].bias)

    def forward(self, x):
        if not self.training:
            return x + self.survival * self.body(self.norm(x))
        if torch.rand(()) >= self.survival:
            return x
        return x + self.body(self.norm(x))


class Ranker(nn.Module):
    def __init__(self, features, dim=32, depth=5, lowest=0.6):
        super().__init__()
        self.stem = nn.Linear(features, dim)
        rates = torch.linspace(1.0, lowest, depth).tolist()
        self.blocks = nn.Sequential(*(DroppableBlock(dim, rate) for rate in rates))
        self.score = nn.Linear(dim, 1)

    def forward(self, x):
        return self.score(self.blocks(self.stem(x))).squeeze(-1)


class PairTrainer:
    def __init__(self, model, lr, decay):
        self.model = model
        self.average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay), use_buffers=True)
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.01)

    def step(self, winner, loser):
        self.model.train()
        both = torch.cat([winner, loser])
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = self.model(both)
        better, worse = scores.float().chunk(2)
        loss = -F.logsigmoid(better - worse).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.average.update_parameters(self.model)
        return loss.item()

    @torch.no_grad()
    def ordered(self, winner, loser):
        self.average.eval()
        return (self.average(winner) > self.average(loser)).float().mean().item()


def preferences(count, features=8):
    left, right = torch.randn(2, count, features)
    quality = lambda x: x[:, 0] + torch.sin(2 * x[:, 1]) - x[:, 2].abs()
    wins = torch.rand(count) < torch.sigmoid(3.0 * (quality(left) - quality(right)))
    winner = torch.where(wins[:, None], left, right)
    loser = torch.where(wins[:, None], right, left)
    return winner, loser


torch.manual_seed(54)
trainer = PairTrainer(Ranker(8), lr=3e-3, decay=0.97)
test = preferences(500)
for step in range(160):
    loss = trainer.step(*preferences(96))
    if step % 40 == 39:
        print(f"step {step + 1} loss {loss:.4f} ordered {trainer.ordered(*test):.3f}")
