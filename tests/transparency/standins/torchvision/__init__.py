"""What the scripts of pytorch/examples use of torchvision: MNIST, made up; transforms; a ResNet-18; `save_image`."""

import sys

from torchvision import datasets, models, pictures, transforms

sys.modules["torchvision.utils"] = pictures

__all__ = ["datasets", "models", "transforms"]
