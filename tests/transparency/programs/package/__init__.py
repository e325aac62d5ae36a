from .inner import Net, layers
from .inner.layers import double as doubled

__all__ = ["Net", "doubled", "layers"]
