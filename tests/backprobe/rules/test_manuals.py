"""Every manual is run, both ways, by the laws that plug-ins are tested by; Backprobe's rules keep them all."""

from backprobe.rules import RULES
from backprobe.rules.testing import laws

test_rule = laws(RULES)
