from .. import helper as up
from ..helper import double
from . import again
level = double(len(__name__.split(".")))
