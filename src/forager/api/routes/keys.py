"""The caller of a request."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from forager.access.caller import Caller, Visibility
from forager.access.operations import Limits
from forager.api.services import ReaderServices
from forager.operations.models import ResponseModel

_ABOUT_ME = {"key_id": "ID of the key; null without a key.", "name": "Name of the local user."}


class Me(ResponseModel, row=Caller, about=_ABOUT_ME):
    """The caller; without a key, a user of this machine."""

    visibility: Visibility = Field(
        description="The jobs and sources that the caller sees; admins see everything."
    )
    quota: Limits = Field(description="Limits of the caller.")


router = APIRouter(tags=["keys"])


@router.get("/me")
async def me(services: ReaderServices) -> Me:
    """Show the caller: owner, scope and quota."""
    return Me.of(services.caller)
