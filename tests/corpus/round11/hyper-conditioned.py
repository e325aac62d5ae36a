# /// case
# title = "The generated weights are wrapped in nn.Parameter"
# category = "leaf"
# kind = "parameter-wrap-makes-new-leaf"
# kinds_also_ok = ["nn-parameter-cuts-graph", "graph-break", "hypernetwork-without-gradient", "new-leaf-in-forward"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["hyper", "nn.Parameter", "generated", "functional_call"]
# symptom = "the hypernetwork never gets a gradient and only the trunk is trained"
# symptom_check = "model.hyper[0].weight.grad is None"
# cause = "nn.Parameter makes a new leaf of the generated tensor, which forgets how it was computed."
# fix = "hand the generated tensors over as they are"
# ///
import torch
from torch import nn
import torch.nn.functional as F
from torch.func import functional_call


class TaskFamily:
    """Pendulum-like one-step prediction, whose physics differ between tasks."""

    def sample(self, tasks, points):
        length, drag = 0.5 + torch.rand(tasks, 1), 0.4 * torch.rand(tasks, 1)
        context = torch.cat([length, drag], 1)
        angle = torch.randn(tasks, points)
        velocity = torch.randn(tasks, points)
        push = torch.randn(tasks, points)
        change = -angle.sin() / length - drag * velocity + push / length.square()
        return context, torch.stack([angle, velocity, push], -1), change


class HyperConditioned(nn.Module):
    def __init__(self, context_dim, input_dim, hidden=24):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(input_dim, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh())
        self.head = nn.Linear(hidden, 1).requires_grad_(False)
        self.shapes = {name: p.shape for name, p in self.head.named_parameters()}
        total = sum(shape.numel() for shape in self.shapes.values())
        self.hyper = nn.Sequential(nn.Linear(context_dim, 32), nn.ReLU(), nn.Linear(32, total))  #! also

    def generate(self, context):
        flat = self.hyper(context)
        pieces = flat.split([shape.numel() for shape in self.shapes.values()])
        return {name: nn.Parameter(piece.view(shape)) for (name, shape), piece in zip(self.shapes.items(), pieces)}  #- here
#+         return {name: piece.view(shape) for (name, shape), piece in zip(self.shapes.items(), pieces)}

    def forward(self, context, inputs):
        generated = self.generate(context)  #! also
        return functional_call(self.head, generated, (self.trunk(inputs),)).squeeze(-1)  #! also


def meta_loss(model, contexts, inputs, targets):
    losses = [F.mse_loss(model(c, x), y) for c, x, y in zip(contexts, inputs, targets)]
    return torch.stack(losses).mean()


class MetaTrainer:
    def __init__(self, model, family, lr, clip):
        self.model, self.family, self.clip = model, family, clip
        self.optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=150)
        self.curve = []

    def __call__(self, iterations):
        for _ in range(iterations):
            loss = meta_loss(self.model, *self.family.sample(tasks=8, points=24))
            self.optimizer.zero_grad()
            loss.backward()  #! also
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.optimizer.step()
            self.schedule.step()
            self.curve.append(loss.item())
        return sum(self.curve[-10:]) / 10


torch.manual_seed(55)
family = TaskFamily()
model = HyperConditioned(context_dim=2, input_dim=3)
trainer = MetaTrainer(model, family, lr=5e-3, clip=5.0)
recent = trainer(150)
with torch.no_grad():
    unseen = meta_loss(model, *family.sample(tasks=20, points=50)).item()
print(f"meta-training loss {trainer.curve[0]:.4f} -> {recent:.4f}, unseen tasks {unseen:.4f}")
