"""Is the gradient that a step uses the derivative of its loss? The step is run again in forks, with one leaf moved."""

from backprobe.capture.gradient_check.check import GradientChecks

__all__ = ["GradientChecks"]
