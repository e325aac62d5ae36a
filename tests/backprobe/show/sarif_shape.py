"""The part of SARIF 2.1.0 that we write, as a closed schema, from the standard's text (OASIS, sections 3.13 to 3.58).

What stands here is required or allowed by the standard in the same words; a property that is not named is refused, so
that a slip of the pen is seen. The whole schema of OASIS is larger and is not ours to keep.
"""

from typing import Any

TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 1}


def closed_object(required: tuple[str, ...], **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties | {"properties": {"type": "object"}},
        "required": list(required),
        "additionalProperties": False,
    }


def some(items: dict[str, Any], least: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least}


LEVEL = {"enum": ["none", "note", "warning", "error"]}
MESSAGE = closed_object(("text",), text=TEXT)
ARTIFACT = closed_object((), uri={"type": "string", "pattern": r"^[A-Za-z0-9._~/%:!$&'()*+,;=@-]+$"}, uriBaseId=TEXT)
REGION = closed_object(
    ("startLine",), startLine=COUNT, startColumn=COUNT, endLine=COUNT, endColumn=COUNT, snippet=closed_object(("text",), text=TEXT)
)  # fmt: skip
PHYSICAL = closed_object(("artifactLocation",), artifactLocation=ARTIFACT, region=REGION)
LOCATION = closed_object(
    (),
    id={"type": "integer", "minimum": -1},
    message=MESSAGE,
    physicalLocation=PHYSICAL,
    logicalLocations=some(closed_object((), fullyQualifiedName=TEXT)),
)
REPLACEMENT = closed_object(("deletedRegion",), deletedRegion=REGION, insertedContent=closed_object((), text=TEXT))
CHANGE = closed_object(
    ("artifactLocation", "replacements"), artifactLocation=ARTIFACT, replacements=some(REPLACEMENT, 1)
)
RESULT = closed_object(
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
    stacks=some(closed_object(("frames",), message=MESSAGE, frames=some(closed_object((), location=LOCATION)))),
    fixes=some(closed_object(("artifactChanges",), description=MESSAGE, artifactChanges=some(CHANGE, 1))),
    suppressions=some(closed_object(("kind",), kind={"enum": ["inSource", "external"]}, justification=TEXT)),
)
RULE = closed_object(
    ("id",),
    id=TEXT,
    name=TEXT,
    shortDescription=MESSAGE,
    help=closed_object(("text",), text=TEXT, markdown=TEXT),
    helpUri={"type": "string", "pattern": "^https?://"},
    defaultConfiguration=closed_object((), level=LEVEL),
)
INVOCATION = closed_object(
    ("executionSuccessful",),
    executionSuccessful={"type": "boolean"},
    exitCode={"type": "integer"},
    toolExecutionNotifications=some(
        closed_object(
            ("message",),
            level=LEVEL,
            message=MESSAGE,
            exception=closed_object((), kind=TEXT, message=TEXT),
            locations=some(LOCATION),
        )
    ),
)
RUN = closed_object(
    ("tool",),
    tool=closed_object(("driver",), driver=closed_object(("name",), name=TEXT, version=TEXT, rules=some(RULE))),
    automationDetails=closed_object((), id=TEXT),
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
