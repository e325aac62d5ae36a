# /// case
# title = "The closure of L-BFGS does not clear the gradients"
# category = "accumulation"
# kind = "missing-zero-grad"
# kinds_also_ok = ["gradients-accumulate", "closure-without-zero-grad"]
# severity = "warning"
# severity_by_writer = "error"
# names = ["closure", "optimizer", "zero_grad"]
# symptom = "the calibration ends far from the minimum"
# symptom_check = "not losses[-1] < 1e-2"
# cause = "Each evaluation of the closure adds its gradient to those of all evaluations before."
# fix = "optimizer.zero_grad() at the start of the closure"
# ///
import torch

torch.manual_seed(4)


class Oscillator:
    def __init__(self, stiffness, damping, cubic):
        self.raw = torch.tensor([stiffness, damping, cubic], dtype=torch.float64).requires_grad_()

    def rhs(self, q, v):
        stiffness, damping, cubic = self.raw
        return v, -stiffness * q - damping * v - cubic * q ** 3

    def trajectory(self, q, v, dt, steps):
        out = []
        for _ in range(steps):
            dq, dv = self.rhs(q, v)
            dq2, dv2 = self.rhs(q + dt / 2 * dq, v + dt / 2 * dv)
            q, v = q + dt * dq2, v + dt * dv2
            out.append(q)
        return torch.stack(out)


def calibrate(system, start, measured, dt, rounds=8):
    optimizer = torch.optim.LBFGS([system.raw], lr=0.2, max_iter=5, history_size=5)
    losses = []

    def closure():  #! here
#+         optimizer.zero_grad()
        predicted = system.trajectory(*start, dt, len(measured))  #! here
        loss = (predicted - measured).square().mean()  #! also
        loss.backward()  #! here
        return loss

    for _ in range(rounds):
        losses.append(optimizer.step(closure).item())  #! also
    return losses


start = (torch.tensor([1.0, 0.3, -0.8], dtype=torch.float64), torch.tensor([0.0, 1.0, 0.2], dtype=torch.float64))
with torch.no_grad():
    measured = Oscillator(2.0, 0.3, 0.5).trajectory(*start, 0.1, 40)
    measured += 1e-3 * torch.randn_like(measured)
system = Oscillator(1.4, 0.1, 0.0)
losses = calibrate(system, start, measured, 0.1)
print([f"{value:.2e}" for value in losses])
print("stiffness, damping, cubic:", [round(value, 3) for value in system.raw.tolist()])
