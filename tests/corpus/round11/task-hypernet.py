# /// case
# title = "The generated weights are copied into a network with vector_to_parameters"
# category = "graph-break"
# kind = "generated-weights-copied-as-data"
# kinds_also_ok = ["vector-to-parameters-breaks-graph", "assignment-through-data", "hypernetwork-gets-no-gradient", "parameter-rewrap"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["theta", "vector_to_parameters", "generator", "net"]
# symptom = "neither the generator nor the task codes get a gradient and the error stays where it was"
# symptom_check = "all(p.grad is None for p in model.parameters())"
# cause = "vector_to_parameters writes the values into .data, so net's weights are new leaves without connection to theta."
# fix = "call the network functionally with the slices of theta"
# ///
import math
import torch
import torch.nn as nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def make_regressor(hidden):
    return nn.Sequential(nn.Linear(1, hidden), nn.Tanh(), nn.Linear(hidden, 1))


class HyperNet(nn.Module):
    """One code per task -> all the weights of a small regressor."""

    def __init__(self, n_tasks, code_dim=6, hidden=10):
        super().__init__()
        self.hidden = hidden
        self.n_weights = parameters_to_vector(make_regressor(hidden).parameters()).numel()
        self.codes = nn.Embedding(n_tasks, code_dim)
        self.generator = nn.Sequential(
            nn.Linear(code_dim, 32),
            nn.ReLU(),
            nn.Linear(32, self.n_weights),
        )

    def forward(self, x, task):
        theta = self.generator(self.codes(task))  #! also
        net = make_regressor(self.hidden)  #! also
        vector_to_parameters(theta, net.parameters())  #- here
        return net(x)  #- here
#+         shapes = {name: p.shape for name, p in net.named_parameters()}
#+         parts = theta.split([shape.numel() for shape in shapes.values()])
#+         weights = {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts)}
#+         return torch.func.functional_call(net, weights, (x,))


class SineTasks:
    def __init__(self, n_tasks):
        self.phase = torch.linspace(0, math.pi, n_tasks)
        self.amp = torch.linspace(0.5, 1.5, n_tasks)

    def __len__(self):
        return len(self.phase)

    def sample(self, task, n=32):
        x = torch.rand(n, 1) * 4 - 2
        return x, self.amp[task] * torch.sin(x + self.phase[task])


def evaluate(model, tasks):
    model.eval()
    with torch.no_grad():
        errors = []
        for t in range(len(tasks)):
            x, y = tasks.sample(t, 64)
            errors.append(nn.functional.mse_loss(model(x, torch.tensor(t)), y))
    model.train()
    return torch.stack(errors).mean().item()


def main():
    torch.manual_seed(7)
    torch.set_num_threads(1)
    tasks = SineTasks(5)
    model = HyperNet(len(tasks))
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    curve = [evaluate(model, tasks)]
    for it in range(150):
        loss = 0.0
        for t in torch.randperm(len(tasks))[:3].tolist():
            x, y = tasks.sample(t)
            loss = loss + nn.functional.mse_loss(model(x, torch.tensor(t)), y)
        opt.zero_grad()
        loss.backward()  #! also
        opt.step()
        if (it + 1) % 30 == 0:
            curve.append(evaluate(model, tasks))
            print("iter", it + 1, "mse", round(curve[-1], 4))
    return model, curve


if __name__ == "__main__":
    model, curve = main()
