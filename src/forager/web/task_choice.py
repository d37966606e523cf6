"""Which tasks a form or an address means."""

from __future__ import annotations

from forager.tasks.selection import Selection
from forager.tasks.task import TaskStatus
from forager.web.forms import Form


def chosen_by(form: Form) -> Selection:
    """What the filters of the list say; without any, all tasks."""
    return Selection(
        statuses=tuple(status for status in TaskStatus if status in form.texts("status")),
        domain=form.text("domain") or None,
        url=form.text("url") or None,
        due=form.checked("due"),
        held=True if form.checked("held") else None,
    )


def only(task_id: int) -> Selection:
    return Selection(ids=(task_id,))
