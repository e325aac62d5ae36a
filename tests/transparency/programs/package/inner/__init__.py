from . import layers
from .layers import Net
