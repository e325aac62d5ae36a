"""What a body calls itself: JSON in UTF-8, and never packed."""

from __future__ import annotations

from flask import request

from service.problems.errors import Place, Problem


def check_encoding() -> None:
    """Refuse a body that is packed: it would be unpacked to any size before anybody could look at it.

    Raises:
        Problem: `unsupported-media-type`, with the encodings that are taken (RFC 9110, 12.5.3).
    """
    coding = request.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity"}:
        detail = "A body is taken as it is, without a Content-Encoding."
        place = Place(header="Content-Encoding", code="unsupported-encoding", detail=detail)
        raise Problem("unsupported-media-type", detail, hint="Send the body unpacked.", places=(place,),
                      headers={"Accept-Encoding": "identity"})  # fmt: skip


def check_content_type() -> None:
    """Refuse what does not call itself JSON in UTF-8.

    Raises:
        Problem: `unsupported-media-type`.
    """
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype != "application/json" or charset != "utf-8":
        raise Problem("unsupported-media-type", f"The body's type is {request.content_type or 'not given'!r:.100}.")
