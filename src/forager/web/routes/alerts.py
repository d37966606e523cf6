"""Alert rules: add, edit, delete, and a preview with the recorded prices."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from forager.amounts import amount_text
from forager.api.limits import RowId
from forager.errors import ForagerError, InvalidInput
from forager.products.alerts import rules as alerts
from forager.products.alerts.preview import AlertPreview, preview_alert
from forager.products.alerts.rules import AlertKind, NewAlert
from forager.web.forms import Form, Submitted
from forager.web.page import Done, WebPage, action, new_router, page
from forager.web.routes.products import amount_of
from forager.web.visit import OperatorVisit, ReaderVisit, WebVisit

router = new_router()

ALERTS = 100
RULE_KINDS = {
    AlertKind.PRICE_BELOW: "Price falls below an amount",
    AlertKind.PRICE_ABOVE: "Price rises above an amount",
    AlertKind.PRICE_DROP: "Price drops by a percentage",
    AlertKind.PRICE_RISE: "Price rises by a percentage",
    AlertKind.NEW_LOW: "Lowest price in a number of days",
    AlertKind.BACK_IN_STOCK: "Back in stock",
    AlertKind.BEST_OFFER: "Best offer of the item changes",
    AlertKind.UNDERCUT: "Price falls below the own price",
}
# what a kind of rule is given
RULE_VALUES: dict[AlertKind, tuple[str, ...]] = {
    AlertKind.PRICE_BELOW: ("amount", "currency"),
    AlertKind.PRICE_ABOVE: ("amount", "currency"),
    AlertKind.PRICE_DROP: ("percent", "days", "currency"),
    AlertKind.PRICE_RISE: ("percent", "days", "currency"),
    AlertKind.NEW_LOW: ("days", "currency"),
    AlertKind.BACK_IN_STOCK: (),
    AlertKind.BEST_OFFER: ("currency",),
    AlertKind.UNDERCUT: ("currency",),
}


@page(router, "/alerts")
async def list_alerts(visit: ReaderVisit) -> WebPage:
    form = visit.asked
    return await _alerts(visit, form, form.optional("cursor"))


async def _alerts(
    visit: WebVisit,
    given: Form,
    cursor: str | None = None,
    error: ForagerError | None = None,
    preview: AlertPreview | None = None,
) -> WebPage:
    """The rules, and the form with its input."""
    found = await alerts.list_alerts(visit.database, cursor=cursor, limit=ALERTS)
    return WebPage(
        "alerts.html",
        rules=found,
        given=given,
        kinds=[(kind.value, label) for kind, label in RULE_KINDS.items()],
        problem=error,
        preview=preview,
    ).after(error)


@action(router, "/alerts")
async def add_alert(visit: OperatorVisit, form: Submitted) -> Done | WebPage:
    """Add the rule of the form, or show what it would have done."""
    try:
        if form.checked("preview"):
            found = await preview_alert(visit.database, _new_alert(form))
            return await _alerts(visit, form, preview=found)
        rule = await alerts.add_alert(visit.database, _new_alert(form))
    except ForagerError as error:
        return await _alerts(visit, form, error=error)
    return Done(f"Alert added: {rule.condition}.", to="/alerts", leaves=True)


@page(router, "/alerts/{rule_id}")
async def show_alert(visit: ReaderVisit, rule_id: RowId) -> WebPage:
    return await _alert(visit, rule_id)


async def _alert(visit: WebVisit, rule_id: int, error: ForagerError | None = None) -> WebPage:
    rule = await alerts.show_alert(visit.database, rule_id)
    kind = AlertKind(rule.kind)
    values = {name: getattr(rule, name) for name in RULE_VALUES[kind]}
    shown = {n: amount_text(v) if isinstance(v, Decimal) else v for n, v in values.items()}
    return WebPage(
        "alert.html", rule=rule, label=RULE_KINDS[kind], values=shown, problem=error
    ).after(error)


@action(router, "/alerts/{rule_id}")
async def change_alert(visit: OperatorVisit, form: Submitted, rule_id: RowId) -> Done | WebPage:
    rule = await alerts.show_alert(visit.database, rule_id)
    try:
        values = _values(form, AlertKind(rule.kind))
        rule = await alerts.change_alert(visit.database, rule_id, values)
    except ForagerError as error:
        return await _alert(visit, rule_id, error)
    return Done(f"Alert changed: {rule.condition}.", to="/alerts", leaves=True)


@action(router, "/alerts/{rule_id}/delete")
async def delete_alert(visit: OperatorVisit, form: Submitted, rule_id: RowId) -> Done:
    await alerts.delete_alert(visit.database, rule_id)
    return Done("Alert deleted.", to="/alerts")


def _new_alert(form: Form) -> NewAlert:
    """The rule of the form; values that its kind does not have are left out."""
    kind = next((each for each in AlertKind if each == form.text("kind")), None)
    if kind is None:
        raise InvalidInput("choose a condition")
    return NewAlert(
        kind,
        **_values(form, kind),
        product=form.optional("product"),
        domain=form.optional("domain"),
        brand=form.optional("brand"),
        category=form.optional("category"),
    )


def _values(form: Form, kind: AlertKind) -> dict[str, Any]:
    """The values of the form that a kind of rule has."""
    read: dict[str, Callable[[], Any]] = {
        "percent": lambda: amount_of(form, "percent"),
        "amount": lambda: amount_of(form, "amount"),
        "days": lambda: form.number("days", least=1),
        "currency": lambda: form.optional("currency"),
    }
    return {name: read[name]() for name in RULE_VALUES[kind]}
