"""Errors as people read them: what happened, and what to do."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from forager.api.problems import FieldProblem, Problem, problem_of
from forager.logs import get_logger
from forager.web.clicks import in_clicks
from forager.web.notices import Notice
from forager.web.rendering import bare_page
from forager.web.visit import SignInNeeded

log = get_logger("web")


def answer_error(request: Request, error: Exception) -> Response:
    """The page of an error, the way to sign in, or a notice if a script asked."""
    if isinstance(error, SignInNeeded):
        return _sign_in(request)
    if wants_fragment(request):
        problem = told_to_people(error)
        trigger = Notice(words_of(problem), "error").as_trigger()
        return Response(status_code=problem.status, headers={"HX-Trigger": trigger})
    return error_page(request, error)


def told_to_people(error: Exception) -> Problem:
    """What happened, with what to click where others would be told what to type."""
    problem = problem_of(error)
    told: dict[str, Any] = {"detail": in_clicks(problem.detail)}
    if problem.fix is not None:
        told["fix"] = in_clicks(problem.fix)
    if problem.errors is not None:
        told["errors"] = [
            FieldProblem(field=each.field, message=in_clicks(each.message))
            for each in problem.errors
        ]
    return problem.model_copy(update=told)


def words_of(problem: Problem) -> str:
    """What happened and what to do, in one paragraph."""
    return f"{_sentence(problem.detail)} {problem.fix or ''}".strip()


def error_page(request: Request, error: Exception) -> Response:
    problem = told_to_people(error)
    if problem.status == 500:
        log.error("a page failed", exc_info=error)
    return bare_page(request, "error.html", _values(problem), status=problem.status)


def wants_fragment(request: Request) -> bool:
    """Whether a script on the page asks, and not the browser for a whole page."""
    return request.headers.get("hx-request") == "true"


def _sign_in(request: Request) -> Response:
    where = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    target = "/sign-in" if request.method != "GET" else f"/sign-in?next={quote(where)}"
    if wants_fragment(request):
        return Response(status_code=401, headers={"HX-Redirect": "/sign-in"})
    if "text/event-stream" in request.headers.get("accept", ""):
        return Response(status_code=401)
    return RedirectResponse(target, 303)


def _values(problem: Problem) -> dict[str, object]:
    return {"problem": problem, "title": problem.title, "detail": _sentence(problem.detail)}


def _sentence(words: str) -> str:
    text = words.strip()
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
