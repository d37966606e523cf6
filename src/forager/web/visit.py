"""A visit to a page: the services for its caller, and the session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Request

from forager.access.caller import LOCAL, Scope, Unauthorized
from forager.access.keys import any_key, caller_of
from forager.access.oidc import caller_by_token
from forager.api.authentication import is_local
from forager.api.limits import Paging
from forager.api.services import Services
from forager.web.forms import Form, parse_form
from forager.web.sessions import WebSession, new_session, read_session

# of a list
PAGE_SIZE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class WebVisit(Services):
    """A request for a page of the dashboard, and the services it may use."""

    request: Request
    session: WebSession
    # the session has just begun, and the response must set its cookie
    is_new: bool = False

    @property
    def may_operate(self) -> bool:
        return self.caller.scope.includes(Scope.OPERATE)

    @property
    def may_administer(self) -> bool:
        return self.caller.is_admin

    @property
    def is_open(self) -> bool:
        """Sign-in is off: there is no key, and only this machine can connect."""
        return self.caller is LOCAL

    @property
    def theme(self) -> str:
        chosen = self.request.cookies.get("forager_theme", "")
        return chosen if chosen in ("light", "dark") else "auto"

    @property
    def asked(self) -> Form:
        """The fields of the URL."""
        return parse_form(self.request.url.query.encode())

    def with_query(self, **changes: str) -> str:
        """This page with other fields in its URL; a list begins at its first row."""
        given = self.request.query_params.multi_items()
        kept = [pair for pair in given if pair[0] not in {*changes, "cursor"} and pair[1]]
        fields = [*kept, *((name, value) for name, value in changes.items() if value)]
        return f"{self.request.url.path}?{urlencode(fields)}" if fields else self.request.url.path

    def following(self, cursor: str | None) -> str | None:
        """The URL of the next page of a list; None on the last page."""
        return None if cursor is None else self.with_query(cursor=cursor)

    @property
    def paging(self) -> Paging:
        """The part of a list that the URL asks for."""
        return Paging(cursor=self.request.query_params.get("cursor") or None, limit=PAGE_SIZE)

    async def check(self) -> None:
        """Raise if the key was revoked, or the first key was created, since the visit began."""
        if self.session.key_id is not None:
            await caller_of(self.database, self.session.key_id)
        elif self.session.signed_in is None and await any_key(self.database):
            raise SignInNeeded


class SignInNeeded(Unauthorized):
    """Sign in with an API key first."""


async def visit_of(request: Request) -> WebVisit:
    """The visit, or SignInNeeded."""
    services: Services = request.app.state.services
    session = read_session(request, services.vault)
    is_configured = services.settings.oidc_issuer is not None
    if session is not None and session.key_id is not None:
        try:
            caller = await caller_of(services.database, session.key_id)
        except Unauthorized as error:
            raise SignInNeeded(error.message) from None
    elif session is not None and session.signed_in is not None and is_configured:
        user_id, scope, name = session.signed_in
        caller = await caller_by_token(services.database, UUID(user_id), Scope(scope), name)
    elif is_configured or await any_key(services.database) or not is_local(request.scope):
        raise SignInNeeded
    else:
        caller = LOCAL
    return WebVisit(
        services.database,
        services.settings,
        caller,
        services.cache,
        services.engine,
        request=request,
        session=session or new_session(),
        is_new=session is None,
    )


def _visiting(scope: Scope) -> Any:
    async def visit(request: Request) -> WebVisit:
        found = await visit_of(request)
        found.caller.require(scope)
        return found

    return Depends(visit)


ReaderVisit = Annotated[WebVisit, _visiting(Scope.READ)]
OperatorVisit = Annotated[WebVisit, _visiting(Scope.OPERATE)]
AdminVisit = Annotated[WebVisit, _visiting(Scope.ADMIN)]
