"""Errors as pages: what happened, and what to do."""

from __future__ import annotations

from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from forager.api.problems import Problem, problem_of
from forager.errors import ForagerError
from forager.logs import get_logger
from forager.web.formats import sentence
from forager.web.navigation import as_place, linked
from forager.web.rendering import bare_page
from forager.web.sessions import Notice
from forager.web.visit import SignInNeeded

log = get_logger("web")


def answer_error(request: Request, error: Exception) -> Response:
    """The page of an error, a redirect to sign in, or a notice for a request of a script."""
    if isinstance(error, SignInNeeded):
        return _sign_in(request)
    if wants_fragment(request):
        problem = problem_of(error, as_place)
        trigger = Notice(message_of(problem), "error").as_trigger()
        return Response(status_code=problem.status, headers={"HX-Trigger": trigger})
    return error_page(request, error)


def message_of(problem: Problem) -> str:
    """What happened and what to do, in one paragraph."""
    return f"{_sentence(problem.detail)} {problem.fix or ''}".strip()


def error_page(request: Request, error: Exception) -> Response:
    problem = problem_of(error, as_place)
    if problem.status == 500:
        log.error("a page failed", exc_info=error)
    values = {
        "problem": problem,
        "detail": _sentence(problem.detail),
        "fix": linked(error.hint if isinstance(error, ForagerError) else problem.fix),
    }
    return bare_page(request, "error.html", values, status=problem.status)


def wants_fragment(request: Request) -> bool:
    """Whether a script of the page sent the request."""
    return request.headers.get("hx-request") == "true"


def _sign_in(request: Request) -> Response:
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = "/sign-in" if request.method != "GET" else f"/sign-in?next={quote(where)}"
    if wants_fragment(request):
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    if "text/event-stream" in request.headers.get("accept", ""):
        return Response(status_code=401)
    return RedirectResponse(target, 303)


def _sentence(message: str) -> str:
    text = sentence(message.strip())
    return text if text.endswith((".", "!", "?")) else f"{text}."
