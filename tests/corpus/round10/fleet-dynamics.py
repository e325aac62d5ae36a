# /// case
# title = "Gradients are cleared for each robot although the step follows only after the last"
# category = "accumulation"
# kind = "gradients-cleared-between-microbatches"
# kinds_also_ok = ["zero-grad-in-wrong-place", "accumulation-discarded", "zero-grad-every-microbatch"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["zero_grad", "optimizer", "fleet"]
# symptom = "only the last robot is learned; the embeddings of the others stay at zero"
# symptom_check = "bool((model.embedding.weight[:-1] == 0).all())"
# cause = "zero_grad stands inside the loop over robots, so only the last robot's gradient is left when step runs."
# fix = "clear once per round, before the loop over robots"
# ///
import torch
import torch.nn as nn


class SharedDynamics(nn.Module):
    def __init__(self, robots, state=3, action=1, code=4, width=32):
        super().__init__()
        self.embedding = nn.Embedding(robots, code)
        nn.init.zeros_(self.embedding.weight)
        self.body = nn.Sequential(
            nn.Linear(state + action + code, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, state)
        )

    def forward(self, robot, state, torque):
        code = self.embedding(torch.full((len(state),), robot))
        return state + self.body(torch.cat([state, torque, code], dim=1))


def record(mass, friction, n=96, dt=0.1):
    angle, speed = torch.empty(n).uniform_(-3, 3), torch.randn(n)
    torque = torch.empty(n, 1).uniform_(-2, 2)
    faster = speed + dt * (torque[:, 0] - friction * speed - 4.0 * angle.sin()) / mass
    moved = angle + dt * faster
    pack = lambda a, s: torch.stack([a.cos(), a.sin(), s], dim=1)
    return pack(angle, speed), torque, pack(moved, faster)


def train(model, fleet, rounds):
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    curve = []
    for _ in range(rounds):
        total = 0.0
#+         optimizer.zero_grad()
        for robot, (state, torque, following) in enumerate(fleet):  #! also
            optimizer.zero_grad()  #- here
            loss = nn.functional.mse_loss(model(robot, state, torque), following)
            (loss / len(fleet)).backward()  #! also
            total += loss.item()
        optimizer.step()  #! also
        curve.append(total / len(fleet))
    return curve


torch.manual_seed(21)
fleet = [record(mass, friction) for mass, friction in ((0.5, 0.1), (1.0, 0.6), (2.0, 0.2), (4.0, 1.5))]
model = SharedDynamics(len(fleet))
curve = train(model, fleet, rounds=120)
print(f"mean loss {curve[0]:.4f} -> {curve[-1]:.4f}")
