"""The part of SARIF 2.1.0 that we write, as a closed schema, from the standard's text (OASIS, sections 3.13 to 3.58).

What stands here is required or allowed by the standard in the same words; a property that is not named is refused, so
that a slip of the pen is seen. The whole schema of OASIS is larger and is not ours to keep.
"""

from typing import Any

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}


def closed(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties | {"properties": {"type": "object"}},
        "required": list(required),
        "additionalProperties": False,
    }


def some(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = closed(("text",), text=TEXT)
ARTIFACT = closed((), uri={"type": "string", "pattern": r"^[A-Za-z0-9._~/%:!$&'()*+,;=@-]+$"}, uriBaseId=TEXT)
REGION = closed(
    ("startLine",), startLine=COUNT, startColumn=COUNT, endLine=COUNT, endColumn=COUNT, snippet=closed(("text",), text=TEXT)
)  # fmt: skip
PHYSICAL = closed(("artifactLocation",), artifactLocation=ARTIFACT, region=REGION)
LOCATION = closed(
    (),
    id={"type": "integer", "minimum": -1},
    message=MESSAGE,
    physicalLocation=PHYSICAL,
    logicalLocations=some(closed((), fullyQualifiedName=TEXT)),
)
REPLACEMENT = closed(("deletedRegion",), deletedRegion=REGION, insertedContent=closed((), text=TEXT))
CHANGE = closed(("artifactLocation", "replacements"), artifactLocation=ARTIFACT, replacements=some(REPLACEMENT, 1))
RESULT = closed(
    ("message",),
    ruleId=TEXT,
    ruleIndex={"type": "integer", "minimum": 0},
    level=LEVEL,
    message=MESSAGE,
    baselineState={"enum": ["new", "unchanged", "updated", "absent"]},
    locations=some(LOCATION),
    relatedLocations=some(LOCATION),
    occurrenceCount=COUNT,
    partialFingerprints={"type": "object", "additionalProperties": TEXT},
    stacks=some(closed(("frames",), message=MESSAGE, frames=some(closed((), location=LOCATION)))),
    fixes=some(closed(("artifactChanges",), description=MESSAGE, artifactChanges=some(CHANGE, 1))),
    suppressions=some(closed(("kind",), kind={"enum": ["inSource", "external"]}, justification=TEXT)),
)
RULE = closed(
    ("id",),
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    help=closed(("text",), text=TEXT, markdown=TEXT),
    helpUri={"type": "string", "pattern": "^https?://"},
    defaultConfiguration=closed((), level=LEVEL),
)
INVOCATION = closed(
    ("executionSuccessful",),
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    toolExecutionNotifications=some(
        closed(
            ("message",),
            level=LEVEL,
            message=MESSAGE,
            exception=closed((), kind=TEXT, message=TEXT),
            locations=some(LOCATION),
        )
    ),
)
RUN = closed(
    ("tool",),
    tool=closed(("driver",), driver=closed(("name",), name=TEXT, version=TEXT, rules=some(RULE))),
    automationDetails=closed((), id=TEXT),
    columnKind={"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
    originalUriBaseIds={"type": "object"},
    invocations=some(INVOCATION),
    results=some(RESULT),
)
LOG = {
    "type": "object",
    "properties": {"$schema": TEXT, "version": {"const": "2.1.0"}, "runs": some(RUN)},
    "required": ["version", "runs"],
    "additionalProperties": False,
}
