"""`--baseline` of an audit: on a service an audit's id, with `--local` the JSON report of one."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from backprobe.cli.exit_codes import UsageError

if TYPE_CHECKING:
    from backprobe.rules.policy import Rules

_AUDIT: Final = re.compile("aud_[0-7][0-9A-HJKMNP-TV-Z]{25}")


def check_baseline(given: str, rules: Rules, *, local: bool) -> None:
    """Refuse a baseline of the other kind; say in a line where the policy makes no use of it.

    Raises:
        UsageError: a service is asked and it is no audit's id, or none is and it is one.
    """
    is_audit = _AUDIT.fullmatch(given) is not None
    if not local and not is_audit:
        said = "on a service `--baseline` is an audit's id (aud_..., in the last line of its output)"
        raise UsageError(f"{said}, not `{given}`: a JSON report is for --local")
    if local and is_audit and not Path(given).exists():
        raise UsageError(
            f"with --local `--baseline` is the JSON report of an audit, not `{given}`: ids are for a service"
        )
    if not rules.new_only:
        said = (
            "the policy has no `new-only = true`: findings of the baseline are counted, and fail or warn as others do"
        )
        print(f"backprobe: {said}", file=sys.stderr)


def known(path: Path) -> tuple[str, ...]:
    """The fingerprints in the JSON that an audit before has written; without those that a comment suppresses.

    Raises:
        UsageError: it cannot be read, or is something else.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        found = [one for item in told["items"] for one in item["findings"]]
        return tuple(one["fingerprint"] for one in found if one.get("suppressed") is None)
    except OSError as error:
        raise UsageError(f"cannot read the baseline `{path}`: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UsageError(f"`{path}` is not what `backprobe audit --format json` writes") from None
