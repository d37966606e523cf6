"""Operations on errors of tasks and jobs, in groups and one by one."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from pydantic import Field

from forager.failures import service
from forager.failures.cause import ErrorType
from forager.failures.service import ErrorFilter
from forager.operations.models import (
    Listed,
    OnlyDomain,
    Paging,
    PlainText,
    ResponseModel,
    RowId,
    listed,
)
from forager.operations.operation import Columns, Context, Group

errors = Group("errors", "Errors of tasks and jobs, in groups by cause and one by one.", "Errors")

ErrorId = Annotated[RowId, Field(description="ID of the error.")]
Type = Annotated[ErrorType, Field(description="Only errors of this type.")]
Hours = Annotated[
    float, Field(gt=0, le=87600, allow_inf_nan=False, description="Only errors of the last hours.")
]
Message = Annotated[
    PlainText,
    Field(max_length=2000, description="Only errors with this message, as listed in groups."),
]
TaskId = Annotated[RowId, Field(description="Only errors of this task.")]


_ABOUT_TASK_ERROR_GROUP = {
    "first_seen": "When the oldest error of the group occurred.",
    "example_id": "ID of the newest error of the group.",
    "example_message": "Message of the newest error of the group.",
    "count": "Number of errors in the group.",
    "last_seen": "When the newest error of the group occurred.",
    "message": "Message that the errors have in common.",
}


class TaskErrorGroup(ResponseModel, row=service.ErrorGroup, about=_ABOUT_TASK_ERROR_GROUP):
    """Errors of one domain with the same cause; the example is the newest."""


_ABOUT_TASK_ERROR = {
    "stack_trace": "Stack trace of the error.",
    "url": "URL that failed; null: the error concerns no URL.",
    "error_message": "Message of the error.",
}


class TaskError(ResponseModel, row=service.ErrorRow, about=_ABOUT_TASK_ERROR, thing="error"):
    """One error; its texts are shown as they were received."""

    job_id: UUID | None


GROUP_COLUMNS: Columns = {
    "COUNT>": "count", "TYPE": "error_type", "DOMAIN": "domain", "FIRST": "first_seen",
    "LAST": "last_seen", "MESSAGE…": "message", "EXAMPLE…": "example_url",
}  # fmt: skip
ERROR_COLUMNS: Columns = {
    "ID>": "id", "WHEN": "occurred_at", "STAGE": "stage", "KIND": "error_kind", "TASK>": "task_id",
    "MESSAGE…": "error_message", "URL…": "url",
}  # fmt: skip
NONE = "There are no such errors."


@errors.operation("groups", "GET /errors/groups", columns=GROUP_COLUMNS, none=NONE)
async def group_errors(
    context: Context,
    paging: Paging,
    domain: OnlyDomain | None = None,
    type: Type | None = None,
    hours: Hours | None = None,
) -> Listed[TaskErrorGroup]:
    """List errors by domain, type and message, most frequent first."""
    wanted = ErrorFilter(domain, type, _age(hours), user_id=context.owner)
    page = await service.group_errors(context.database, wanted, **paging)
    return listed(page, TaskErrorGroup.of)


@errors.operation(
    "list", "GET /errors", columns=ERROR_COLUMNS, none=NONE, flags={"task_id": "--task"}
)
async def list_errors(
    context: Context,
    paging: Paging,
    domain: OnlyDomain | None = None,
    type: Type | None = None,
    hours: Hours | None = None,
    message: Message | None = None,
    task_id: TaskId | None = None,
) -> Listed[TaskError]:
    """List individual errors, newest first."""
    wanted = ErrorFilter(domain, type, _age(hours), message, task_id, context.owner)
    page = await service.list_errors(context.database, wanted, **paging)
    return listed(page, TaskError.of)


@errors.operation("show", "GET /errors/{error_id}")
async def show_error(context: Context, error_id: ErrorId) -> TaskError:
    """Show one error in detail."""
    found = await service.get_error(context.database, error_id, user_id=context.owner)
    return TaskError.of(found)


def _age(hours: float | None) -> timedelta | None:
    return None if hours is None else timedelta(hours=hours)
