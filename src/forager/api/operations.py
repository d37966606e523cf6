"""Endpoints derived from operations."""

from __future__ import annotations

import inspect
from functools import partial
from operator import attrgetter
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from pydantic import BaseModel

from forager.api.idempotency import OnlyOnce
from forager.api.limits import paging_of
from forager.api.services import AdminServices, OperatorServices, ReaderServices, Services
from forager.operations.fields import description_of
from forager.operations.models import Paging
from forager.operations.operation import Group, Operation, Scope

_SERVICES = {
    Scope.READ: ReaderServices,
    Scope.OPERATE: OperatorServices,
    Scope.ADMIN: AdminServices,
}


def router_of(group: Group) -> APIRouter:
    """The endpoints of a group."""
    router = APIRouter()
    for operation in filter(attrgetter("endpoint"), group.operations):
        router.add_api_route(
            operation.path,
            _endpoint(operation),
            methods=[operation.method],
            tags=[operation.tag or group.name.replace("-", " ")],
            status_code=operation.status,
            response_model=operation.answer,
        )
    return router


def _endpoint(operation: Operation) -> Any:
    async def endpoint(
        services: Services, once: Any = None, body: BaseModel | None = None, **given: Any
    ) -> Any:
        if operation.body is not None:
            given |= operation.of_body(operation.body() if body is None else body)

        async def work(services: Services) -> BaseModel:
            answer: BaseModel = await operation.run(services.context, **given)
            return answer

        if operation.cached:
            key = (operation.name, services.caller.sees_only, str(given))
            return await services.cache.get(key, partial(work, services))
        if once is None:
            return await work(services)
        return await once.do(
            work, lambda answer: answer, status=operation.status, secret=operation.secret
        )

    endpoint.__name__, endpoint.__doc__ = operation.run.__name__, operation.run.__doc__
    endpoint.__signature__ = inspect.Signature(_parameters(operation))  # type: ignore[attr-defined]
    return endpoint


def _parameters(operation: Operation) -> list[inspect.Parameter]:
    """The inputs as FastAPI expects them."""
    kinds: dict[str, Any] = {}
    for name, each in operation.values.model_fields.items():
        if name in operation.parameters:
            where = Path if name in operation.path_names else Query
            declared = operation.parameters[name].annotation
            kinds[name] = Annotated[declared, where(description=description_of(each))]
    if operation.paging:
        kinds[operation.paging] = Annotated[Paging, paging_of(operation.limit)]
    if operation.body is not None:
        kinds["body"] = operation.body | None if _may_lack_body(operation) else operation.body
        if operation.method == "GET":
            kinds["body"] = Annotated[operation.body, Query()]
    kinds["services"] = _SERVICES[operation.scope]
    if operation.status != 200 or operation.secret:
        kinds["once"] = OnlyOnce
    return [_parameter(operation, name, kind) for name, kind in kinds.items()]


def _parameter(operation: Operation, name: str, kind: Any) -> inspect.Parameter:
    default: Any = inspect.Parameter.empty
    if name in operation.parameters:
        default = operation.parameters[name].default
    elif name == "body" and _may_lack_body(operation):
        default = None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _may_lack_body(operation: Operation) -> bool:
    """A POST whose inputs are single and optional needs no body."""
    fields = operation.body.model_fields.values() if operation.body else ()
    return not operation.model and not any(each.is_required() for each in fields)
