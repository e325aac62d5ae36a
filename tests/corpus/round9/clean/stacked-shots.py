import torch


def ricker(steps, dt, frequency):
    t = torch.arange(steps) * dt - 1.2 / frequency
    a = (torch.pi * frequency * t) ** 2
    return (1 - 2 * a) * torch.exp(-a)


def shoot(speed, source, receivers, wavelet, dt, h):
    before = now = torch.zeros_like(speed)
    ratio = (speed * dt / h) ** 2
    delta = torch.zeros_like(speed)
    delta[source] = dt ** 2
    seen = []
    for amplitude in wavelet:
        curvature = now.roll(1) - 2 * now + now.roll(-1)
        before, now = now, 2 * now - before + ratio * curvature + delta * amplitude
        seen.append(now[receivers])
    return torch.stack(seen)


torch.manual_seed(18)
cells, dt, h = 60, 0.004, 10.0
wavelet = ricker(110, dt, 12.0)
receivers = torch.arange(5, cells - 5, 5)
true_speed = torch.full((cells,), 1500.0)
true_speed[28:36] += 200.0
sources = [8, 30, 52]
with torch.no_grad():
    recorded = {s: shoot(true_speed, s, receivers, wavelet, dt, h) for s in sources}

slowdown = torch.zeros(cells, requires_grad=True)
optimizer = torch.optim.Adam([slowdown], lr=0.1)
for iteration in range(5):
    optimizer.zero_grad()
    total = 0.0
    for s in sources:
        predicted = shoot(1500.0 + 100.0 * slowdown, s, receivers, wavelet, dt, h)
        misfit = (predicted - recorded[s]).square().sum() / recorded[s].square().sum() / len(sources)
        misfit.backward()
        total += misfit.item()
    slowdown.grad[:3] = 0
    slowdown.grad[-3:] = 0
    optimizer.step()
    print(iteration, round(total, 5))
