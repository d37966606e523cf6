"""Declare an operation once, in its feature: the adapters derive their parts from it.

    webhooks = Group("webhooks", "Webhook URLs that receive events.", sees=Scope.OPERATE)

    @webhooks.operation("show", "GET /webhooks/{webhook_id}")
    async def show(context: Context, webhook_id: WebhookId) -> Webhook:
        "Show a webhook."
        return Webhook.of(await service(context).get(webhook_id))

This is the endpoint `GET /api/v1/webhooks/{webhook_id}`, the command `forager webhooks show ID` and
the call `store.run("webhooks show", webhook_id=7)`. The parameters are the inputs: parts of the
path by name, `Paging` for a list, and others, which may be the fields of one model. The annotation
of the result is the JSON that all adapters give. The docstring is the description.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field, ValidationError, create_model

from forager.db.database import Database
from forager.errors import InvalidInput
from forager.hints import Render, as_command
from forager.operations.models import (
    AFTER,
    MAX_CURSOR,
    Limit,
    Paging,
    PlainText,
    RequestModel,
    example,
)
from forager.settings import Settings
from forager.validation import sentences

# the prefix of all paths
API = "/api/v1"


class Scope(StrEnum):
    """What a key may do; each scope includes the ones before it."""

    READ = "read"  # read the data of its owner
    OPERATE = "operate"  # and start, steer and delete it
    ADMIN = "admin"  # everything of all owners, and the installation itself

    def includes(self, other: Scope) -> bool:
        """Whether this scope is enough where the other is needed."""
        order = list(Scope)
        return order.index(self) >= order.index(other)


Cached = Callable[[object, Callable[[], Awaitable[Any]]], Awaitable[Any]]


async def _compute(_key: object, make: Callable[[], Awaitable[Any]]) -> Any:
    return await make()


@dataclass(frozen=True, slots=True)
class Context:
    """What an operation works on, and for whom.

    Each adapter makes one for each call. An operation shows and changes only what `owner` may see,
    and treats the rest as if it did not exist.
    """

    database: Database
    settings: Settings
    # the owner whose objects the caller sees; None: of all owners
    owner: UUID | None = None
    # in audit logs
    actor: str = "user"
    # the `forager.access.caller.Caller`, whose quota counts; None: a person at this machine
    caller: Any = None
    # the `forager.index.engine.Engine` of searches; None: PostgreSQL answers them
    engine: Any = None
    # preferred languages of the caller, as in the header Accept-Language
    language: str | None = None
    # how the adapter writes actions in texts
    show: Render = as_command
    # computes an expensive answer, or returns the one that was computed before
    cached: Cached = _compute


Run = Callable[..., Awaitable[Any]]
Declared = TypeVar("Declared", bound=Run)
# by heading: the field of an item that is shown, or a function of the item; see `cli.output`
Columns = Mapping[str, str | Callable[[Any], Any]]

_PATH_NAME = re.compile(r"\{(\w+)\}")
Cursor = Annotated[PlainText | None, Field(max_length=MAX_CURSOR, description=AFTER)]


@dataclass(frozen=True, kw_only=True)
class Operation:
    """An operation, and how adapters offer it."""

    name: str
    """The group and the command: `webhooks list`."""
    call: str
    """The method and the path below `/api/v1`."""
    scope: Scope
    run: Run
    created: bool = False
    """Answered with 201, and done once per Idempotency-Key."""
    accepted: bool = False
    """Answered with 202 before the work is done, and done once per Idempotency-Key."""
    secret: bool = False
    """Answered with a secret: done once per Idempotency-Key, and stored encrypted."""
    cached: bool = False
    """Takes long: the API may give the same answer to several callers."""
    limit: int = 50
    """The default length of a list."""
    command: bool = True
    """Whether this is the command of its name; it may be another operation, or a function."""
    endpoint: bool = True
    """Whether this is the endpoint of its call; it may be another operation."""
    tag: str = ""
    """The tag of the endpoint, if it is not the group; its operation ID begins with it."""
    many: bool = False
    """Whether the command takes several of the path's parts, and repeats the operation for each."""
    arguments: tuple[str, ...] = ()
    """Inputs that follow the parts of the path as arguments of the command, without a flag."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flags of the command that are not named as their input."""
    confirm: bool | Callable[[Mapping[str, Any]], bool] = False
    """Whether the command asks for confirmation; a function gets the inputs."""
    preview: Callable[..., Awaitable[str]] | None = None
    """Returns the question of the confirmation from the inputs of the operation: what changes."""
    resets: tuple[str, ...] | None = None
    """Inputs of a PATCH that can be set back; by default all that have a default."""
    columns: Columns | Callable[[Any], None] | None = None
    """The table of a list, or a function that prints the answer."""
    none: str = "Nothing found."
    """The text for an empty list."""
    done: str | Callable[[Any], str] | None = None
    """The text of an answer, with its fields in braces; by default all fields, or the table."""
    note: str | Callable[[Any], str] = "The secret is not shown again."
    """A remark on an answer, or on one with a secret, with its fields in braces."""
    succeeded: Callable[[Any], object] | None = None
    """Whether an answer means success, for the exit code."""
    page: str = ""
    """The page of the dashboard, and its button."""
    button: str = ""

    @property
    def method(self) -> str:
        """The HTTP method of the endpoint."""
        return self.call.partition(" ")[0]

    @property
    def path(self) -> str:
        """The path of the endpoint, below `/api/v1`."""
        return self.call.partition(" ")[2]

    @property
    def status(self) -> int:
        """The HTTP status of an answer."""
        return 201 if self.created else 202 if self.accepted else 200

    @cached_property
    def path_names(self) -> list[str]:
        """The inputs that are parts of the path."""
        return _PATH_NAME.findall(self.path)

    @property
    def answer(self) -> Any:
        """The type of the result."""
        return inspect.signature(self.run, eval_str=True).return_annotation

    @cached_property
    def parameters(self) -> dict[str, inspect.Parameter]:
        """The inputs as the function declares them."""
        _, *inputs = inspect.signature(self.run, eval_str=True).parameters.items()
        return dict(inputs)

    @property
    def paging(self) -> str | None:
        """The name of the parameter with the position in a list."""
        found = (name for name, each in self.parameters.items() if each.annotation is Paging)
        return next(found, None)

    @property
    def model(self) -> str | None:
        """The name of the parameter whose fields are the inputs in the body."""
        return next((name for name, each in self.parameters.items() if _is_model(each)), None)

    @cached_property
    def body(self) -> type[BaseModel] | None:
        """The inputs in the body of a request; a GET has the fields of its model in the query."""
        if self.model is not None:
            declared: type[BaseModel] = self.parameters[self.model].annotation
            return declared
        names = self.parameters.keys() - set(self.path_names)
        if self.method in ("GET", "DELETE") or not names:
            return None
        title = "".join(map(str.capitalize, re.split(r"[ -]", self.name)))
        return create_model(title, __base__=_Example, **self._fields(names))

    @cached_property
    def values(self) -> type[BaseModel]:
        """The inputs in the path and in the query."""
        in_body = {self.model, self.paging, *(self.body.model_fields if self.body else ())}
        fields = self._fields(self.parameters.keys() - in_body)
        if self.paging:
            fields |= {"limit": (Limit, self.limit), "cursor": (Cursor, None)}
        return create_model("Values", __base__=RequestModel, **fields)

    def _fields(self, names: set[Any]) -> dict[str, Any]:
        return {
            name: (each.annotation, ... if each.default is each.empty else each.default)
            for name, each in self.parameters.items()
            if name in names
        }

    def bind(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of `run` for inputs by name; raises InvalidInput."""
        names = self.body.model_fields if self.body else {}
        rest = {name: value for name, value in given.items() if name not in names}
        arguments = dict(_checked(self.values, rest))
        if self.paging:
            page = Paging(cursor=arguments.pop("cursor"), limit=arguments.pop("limit"))
            arguments[self.paging] = page
        if self.body is not None:
            body = {name: value for name, value in given.items() if name in names}
            order = _checked(self.body, body)
            if isinstance(order, RequestModel):
                order.check()
            arguments |= self.of_body(order)
        return arguments

    def of_body(self, body: BaseModel) -> dict[str, Any]:
        """The arguments of `run` that a body is."""
        return {self.model: body} if self.model else dict(body)


@dataclass(frozen=True, slots=True)
class HandWritten:
    """A call of the API that is written by hand, as is its command."""

    name: str
    call: str
    page: str = ""
    button: str = ""


@dataclass(frozen=True)
class Group:
    """The operations of a feature, which are the commands of one group.

    `registry.py` lists the modules that declare groups; the API, the command line and the library
    are derived from them:

        proxies = Group("proxies", "Proxies of crawls and tasks.", changes=Scope.ADMIN)

        @proxies.operation("show", "GET /proxies/{proxy_id}")
        async def show(context: Context, proxy_id: ProxyId) -> Proxy: ...
    """

    name: str
    help: str
    page: str = ""
    # who may use operations that only read, and the others
    sees: Scope = Scope.READ
    changes: Scope = Scope.OPERATE
    operations: list[Operation] = field(default_factory=list)
    hand_written: list[HandWritten] = field(default_factory=list)

    def by_hand(self, command: str, *calls: str, page: str = "", button: str = "") -> None:
        """Name calls of a command for which nothing is derived; hints refer to them."""
        name = f"{self.name} {command}".strip()
        for call in calls:
            self.hand_written.append(HandWritten(name, call, page or self.page, button))

    def operation(self, command: str, call: str, /, **how: Any) -> Callable[[Declared], Declared]:
        """Declare the function as an operation; `how` are fields of `Operation`."""
        scope = self.sees if call.startswith("GET ") else self.changes
        given = {"scope": scope, "page": self.page, **how}

        def declare(run: Declared) -> Declared:
            name = f"{self.name} {command}".strip()
            self.operations.append(Operation(name=name, call=call, run=run, **given))
            return run

        return declare


class _Example(RequestModel):
    """Inputs that all have a default need no further example."""

    model_config = example()


def _is_model(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _checked(model: type[BaseModel], given: Mapping[str, Any]) -> BaseModel:
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise InvalidInput("; ".join(sentences(error.errors(), model.model_fields))) from None
