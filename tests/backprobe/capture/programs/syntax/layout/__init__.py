from . import helper
from .inner import deep as _deep
__all__ = ["public", "helper"]
public = "public " + __name__
