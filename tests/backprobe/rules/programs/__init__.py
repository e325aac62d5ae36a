"""Programs beyond the manuals, one file per rule: each condition of a rule has one that fails without it.

A faulty program carries `# <- CODE` at each line that a finding at warning or above must stand at; no mark: silence.
"""

from importlib import import_module
from pkgutil import iter_modules

PROGRAMS = {
    f"{one.name.replace('_', '-')}: {name}": text.lstrip("\n")
    for one in iter_modules(__path__)
    for name, text in import_module(f"{__name__}.{one.name}").PROGRAMS.items()
}
