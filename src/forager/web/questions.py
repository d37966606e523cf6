"""The question before what cannot be undone, where no script has asked it.

A form that is to ask carries its question as `ask`. Scripts ask in a dialogue and say who they are;
without them, or before they are loaded, the question is a page, and its answer the same form.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.requests import Request

from forager.web.errors import wants_fragment
from forager.web.forms import Form

LONGEST = 1000


def unasked(request: Request, form: Form) -> dict[str, object] | None:
    """What the page with the question shows; None if nothing is left to ask."""
    question = form.text("ask") or request.query_params.get("ask", "")
    if not question or form.checked("sure") or wants_fragment(request):
        return None
    kept = {name: values for name, values in form.fields.items() if name not in ("ask", "csrf")}
    return {
        "question": question[:LONGEST],
        "fields": [(name, value) for name, values in kept.items() for value in values],
        "back": _back(request),
    }


def _back(request: Request) -> str:
    """The page that the form was on, if it was one of ours."""
    came_from = urlsplit(request.headers.get("referer", ""))
    if came_from.netloc != request.url.netloc or not came_from.path.startswith("/"):
        return "/"
    # two slashes at the beginning would name another host
    path = "/" + came_from.path.lstrip("/")
    return f"{path}?{came_from.query}" if came_from.query else path
