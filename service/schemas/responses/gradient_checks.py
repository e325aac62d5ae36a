"""What the API tells of the check of gradients."""

from __future__ import annotations

from dataclasses import dataclass

from service.web.listing import Listing
from store.queries.gradient_checks import GradientCheckRow


@dataclass(frozen=True, kw_only=True)
class GradientCheckList(Listing[GradientCheckRow]):
    """Rows of the check, in order."""
