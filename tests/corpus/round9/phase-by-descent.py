# /// case
# title = "The hand-written update makes a new tensor under no_grad"
# category = "leaf"
# kind = "update-replaces-leaf"
# kinds_also_ok = ["leaf-lost", "out-of-place-update"]
# severity = "error"
# names = ["phase", "no_grad"]
# symptom = "the second backward raises"
# raises = "RuntimeError"
# raises_message = "does not require grad"
# cause = "phase is bound to the result of a subtraction under no_grad, which does not require a gradient."
# fix = "phase -= rate * velocity, in place"
# ///
import torch


def propagate(field, transfer):
    return torch.fft.ifft2(torch.fft.fft2(field) * transfer)


def fresnel(size, distance, wavelength=0.5, pitch=4.0):
    f = torch.fft.fftfreq(size, d=pitch)
    return torch.exp(-1j * torch.pi * wavelength * distance * (f[:, None] ** 2 + f[None, :] ** 2))


def ring(size, radius, width):
    axis = torch.arange(size) - size / 2
    r = torch.hypot(axis[:, None], axis[None, :])
    spot = torch.exp(-((r - radius) / width) ** 2)
    return spot / spot.norm()


torch.manual_seed(8)
size = 32
transfer = fresnel(size, distance=150.0)
beam = torch.exp(-(torch.linspace(-1.5, 1.5, size) ** 2))
beam = torch.outer(beam, beam)
beam = beam / beam.norm()
wanted = ring(size, 8.0, 2.0)

phase = (0.1 * torch.randn(size, size)).requires_grad_()
rate, friction = 30.0, 0.7
velocity = torch.zeros(size, size)
errors = []
for iteration in range(20):
    arrived = propagate(torch.polar(beam, phase), transfer)
    error = (arrived.abs() - wanted).square().sum()
    error.backward()  #! also
    with torch.no_grad():  #! also
        velocity = friction * velocity + phase.grad
        phase = phase - rate * velocity  #- here
#+         phase -= rate * velocity
        phase.grad = None  #! also
    errors.append(error.item())
print(f"from {errors[0]:.4f} to {errors[-1]:.4f}")
