"""What a policy says of an item: see `backprobe.rules.policy`, which judges audits on a user's machine as well."""

from backprobe.rules.policy import VERDICTS, WORST, Cell, Found, Rules, Verdict, rules_of

__all__ = ["VERDICTS", "WORST", "Cell", "Found", "Rules", "Verdict", "rules_of"]
