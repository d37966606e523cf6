"""Forms are taken only from our own pages: each carries a token that others cannot know.

Where a request comes from is checked for the whole server, before it gets here (`api/origins.py`).
"""

from __future__ import annotations

import hmac

from starlette.requests import Request

from forager.access.errors import Forbidden
from forager.web.forms import Form
from forager.web.sessions import Session

HEADER = "X-CSRF-Token"
FIELD = "csrf"


def check_token(request: Request, form: Form, session: Session) -> None:
    """Raise unless the request has the session's token, in its header or its form."""
    given = request.headers.get(HEADER) or form.text(FIELD)
    if not hmac.compare_digest(given.encode(), session.csrf.encode()):
        raise Forbidden(
            "this form is not from a page of this session",
            hint="Reload the page and try again.",
        )
