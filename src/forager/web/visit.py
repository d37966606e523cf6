"""A visit to a page: the caller, the session, and the services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from forager.access.caller import LOCAL, Caller, Scope, Unauthorised
from forager.access.keys import any_key, caller_of
from forager.api.authentication import is_local
from forager.api.services import Services
from forager.db.database import Database
from forager.web.sessions import Session, new_session, read_session


@dataclass(frozen=True, slots=True)
class Visit:
    request: Request
    here: Services
    caller: Caller
    session: Session
    # the session has just begun, and the response must set its cookie
    is_new: bool = False

    @property
    def database(self) -> Database:
        return self.here.database

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

    async def check(self) -> None:
        """Raise if the key was revoked, or the first key was created, since the visit began."""
        if self.session.key_id is not None:
            await caller_of(self.here.database, self.session.key_id)
        elif await any_key(self.here.database):
            raise SignInNeeded


class SignInNeeded(Unauthorised):
    """Sign in with an API key first."""


async def visit_of(request: Request) -> Visit:
    """The visit, or SignInNeeded."""
    here: Services = request.app.state.services
    session = read_session(request, here.vault)
    if session is not None and session.key_id is not None:
        return Visit(request, here, await _caller(here, session.key_id), session)
    if await any_key(here.database) or not is_local(request.scope):
        raise SignInNeeded
    if session is not None:
        return Visit(request, here, LOCAL, session)
    return Visit(request, here, LOCAL, new_session(), is_new=True)


async def _caller(here: Services, key_id: str) -> Caller:
    try:
        return await caller_of(here.database, key_id)
    except Unauthorised as error:
        raise SignInNeeded(error.message) from None


class Visiting:
    """A dependency: the visit, if the scope of its key is sufficient."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    async def __call__(self, request: Request) -> Visit:
        visit = await visit_of(request)
        visit.caller.require(self.scope)
        return visit


Reads = Annotated[Visit, Depends(Visiting(Scope.READ))]
Operates = Annotated[Visit, Depends(Visiting(Scope.OPERATE))]
Administers = Annotated[Visit, Depends(Visiting(Scope.ADMIN))]
