"""Text for one line of a page, a table or a terminal: which characters, as a check and in the words of JSON Schema.

Neither control nor format characters (bidi marks, joiners), nor blanks beside the ordinary one. Characters that Unicode
has not assigned, and those of private use, are let in: what shows a text escapes them.

Source:
    Unicode 15.1, general categories Cc, Cf, Zl, Zp, Zs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import GetJsonSchemaHandler
    from pydantic_core import CoreSchema

OTHERS: Final = (
    r"\u0000-\u001F\u007F-\u00A0\u00AD\u0600-\u0605\u061C\u06DD\u070F\u0890\u0891\u08E2\u1680\u180E\u2000-\u200F"
    r"\u2028-\u202F\u205F-\u206F\u3000\uFEFF\uFFF9-\uFFFB"
)
"""What is not taken, in the brackets of a regular expression that Python's and ECMAScript's engines read alike."""

_BEYOND: Final = (
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001-\U000e007f"
)
"""Format characters beyond the first plane, for which the two engines have no common notation."""

_REFUSED: Final = re.compile(f"[{OTHERS}{_BEYOND}]")


def is_printable(text: str) -> bool:
    """Return whether the text is one line of visible characters."""
    return _REFUSED.search(text) is None


@dataclass(frozen=True, slots=True)
class Described:
    """Annotate a field with the JSON Schema keywords of its custom validator, so that the document has them too."""

    words: tuple[tuple[str, Any], ...]

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {**handler(core), **dict(self.words)}


def describe_field(**words: Any) -> Described:
    """Such an annotation: `describe_field(pattern="...")`."""
    return Described(words=tuple(words.items()))
