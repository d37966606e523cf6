"""Products, their histories and their numbers in the words people read."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from forager.amounts import amount_text, price_text
from forager.cli.output import (
    Columns,
    long_time,
    note,
    on_one_line,
    say,
    short_time,
    show_facts,
    show_list,
    show_rows,
    show_table,
)
from forager.products.models import ValueCount
from forager.products.price_history import PriceEntry

# functions for answers take Any: a type checker does not see the fields that a view has of its row
RIGHT = {"justify": "right"}
_STOCK = {"in_stock": "green", "out_of_stock": "red", "discontinued": "dim"}
_SEVERITY = {"error": "red", "doubt": "yellow", "warning": ""}
_DESCRIPTION = 400
_VARIANTS = 50


def money(amount: str | None, currency: str | None) -> str:
    return "" if amount is None else price_text(Decimal(amount), currency)


PRODUCT_COLUMNS: Columns = {
    "ID>": "id",
    "NAME…": "name",
    "PRICE>": lambda product: money(product.price, product.currency),
    "STOCK": lambda product: _stock(product.availability),
    "RATING>": "rating",
    "BRAND…": "brand",
    "DOMAIN": "domain",
    "CHANGED": "updated_at",
    "": lambda product: (_mark(product), "yellow"),
}


def _mark(product: Any) -> str:
    since = product.failing_since
    failing = f"page failing since {short_time(since)}" if since else ""
    return " ".join(filter(None, ("!" if product.problems else "", failing)))


def _stock(availability: str | None) -> tuple[str, str]:
    return (availability or "").replace("_", " "), _STOCK.get(availability or "", "")


def show_details(product: Any) -> None:
    _show_fields(product)
    _show_about(product)
    if product.variants:
        say("\nvariants", "bold")
        show_rows(VARIANT_COLUMNS, product.variants[:_VARIANTS])
    if product.problems:
        say("\nproblems", "bold")
        for problem in product.problems:
            style = _SEVERITY.get(problem.severity, "")
            say(f"  {problem.field}: {problem.message} ({problem.rule})", style)
    _show_images(product)
    if product.extractions:
        say("\nextractions", "bold")
        show_rows(_EXTRACTION_COLUMNS, product.extractions)
    if product.attempts:
        say("\nattempts", "bold")
        show_rows(_ATTEMPT_COLUMNS, product.attempts)


def _show_fields(product: Any) -> None:
    """Print every field with its confidence and its origin in the page."""
    values: dict[str, Any] = {
        "name": product.name,
        "price": money(product.price, product.currency),
        "list_price": money(product.list_price, product.currency),
        "currency": product.currency,
        "availability": product.availability,
        "rating": product.rating,
        "review_count": product.review_count,
        "brand": product.brand,
        "category": product.category,
        "sku": product.sku,
        "gtin": product.gtin,
        "variants": len(product.variants) or None,
        "description": _short(product.description),
    }
    rows = [
        (name, on_one_line(str(value)), *_evidence(product, name))
        for name, value in values.items()
        if value not in (None, "")
    ]
    show_table(
        {"FIELD": {"style": "bold"}, "VALUE": {"cut": True}, "CONFIDENCE": RIGHT, "FROM": {}}, rows
    )


def _evidence(product: Any, name: str) -> tuple[str, str]:
    evidence = product.evidence.get(name)
    return ("", "") if evidence is None else (f"{evidence.confidence:.0%}", evidence.origin or "")


def _short(text: str | None) -> str | None:
    if text is None or len(text) <= _DESCRIPTION:
        return text
    return f"{text[:_DESCRIPTION]}…"


def _show_about(product: Any) -> None:
    history = product.history
    spread = (
        f"{history.changes} recorded, from {money(history.lowest, product.currency)} to "
        f"{money(history.highest, product.currency)}"
        if history.lowest is not None
        else str(history.changes)
    )
    facts = {
        "id": product.id,
        "url": product.url,
        "final url": product.metadata.get("final_url", ""),
        "redirects": ", ".join(product.aliases),
        "page shows": _replacement(product),
        "parser": f"{product.parser} {product.parser_version}",
        "language": product.language or "",
        "prices": spread,
        "first seen": product.created_at,
        "changed": product.updated_at,
        "price changed": product.price_changed_at,
        "last seen": product.last_seen_at,
        "task": _task(product),
        "next visit": product.next_crawl_at,
    }
    say("")
    show_facts(facts)


def _replacement(product: Any) -> str:
    """The other product that the page shows, whose price is not stored."""
    other = product.replacement
    if other is None:
        return ""
    since = f"{on_one_line(other.name)} since {long_time(other.first_seen_at)}"
    accept = f"forager products accept {product.id} stores it"
    return f"{since}, visits: {other.visits}; the price is kept, {accept}"


def _task(product: Any) -> str:
    if product.task_id is None:
        return "none: it is not tracked any more"
    parts = [
        f"{product.task_id} {product.task_status}",
        f"every {product.every}" if product.every is not None else "",
        product.task_hold or "",
        f"failing since {long_time(product.failing_since)}" if product.failing_since else "",
        product.task_error or "",
    ]
    return ", ".join(filter(None, parts))


VARIANT_COLUMNS: Columns = {
    "NAME…": lambda each: each.get("name"),
    "SKU": lambda each: each.get("sku") or each.get("gtin"),
    "PRICE>": lambda each: f"{each.get('price') or ''} {each.get('currency') or ''}".strip(),
    "STOCK": lambda each: _stock(each.get("availability")),
}


def _show_images(product: Any) -> None:
    if not product.images:
        return
    say("\nimages", "bold")
    columns: Columns = {
        "": "position",
        "TYPE": "type",
        "STATE": lambda image: image.problem or image.status,
        "SIZE": lambda image: f"{image.width}x{image.height}" if image.width else "",
        "URL": "url",
    }
    show_rows(columns, product.images)


_EXTRACTION_COLUMNS: Columns = {
    "WHEN": "created_at",
    "PARSER": lambda found: f"{found.parser} {found.parser_version}",
    "ROLE": "role",
    "OUTCOME": "outcome",
    "REASON": lambda found: found.error_message or ", ".join(p.message for p in found.problems),
}
_ATTEMPT_COLUMNS: Columns = {
    "WHEN": "finished_at",
    "STAGE": "stage",
    "OUTCOME": lambda each: each.outcome.replace("_", " "),
    "HTTP>": "http_status",
    "REASON": "error_message",
}


def show_history(found: Any) -> None:
    """Newest first; the chart shows the currency of the newest price."""
    recorded = [entry for entry in found.items if entry.standing == "recorded"]
    for line in chart(recorded[::-1]):
        say(line, "cyan")
    show_list(
        found,
        False,
        {
            "WHEN": "recorded_at",
            "PRICE>": lambda entry: money(entry.price, entry.currency),
            "CHANGE>": lambda entry: _change(entry.percent),
            "LIST PRICE>": lambda entry: money(entry.list_price, entry.currency),
            "STOCK": lambda entry: _stock(entry.availability),
            **({} if len(recorded) == len(found.items) else {"NOTE": _note}),
        },
        none="No price changes in this period.",
    )


_STANDINGS = {
    "open": "not confirmed yet",
    "confirmed": "confirmed later",
    "not_confirmed": "not confirmed",
    "wrong": "marked as wrong",
}


def _note(entry: Any) -> str:
    """The outcome of a withheld price: `seen once, not confirmed`."""
    if entry.standing not in _STANDINGS:
        return ""
    seen = "seen once" if entry.visits == 1 else f"seen {entry.visits} times"
    return f"{seen}, {_STANDINGS[entry.standing]}"


def _change(percent: float | None) -> tuple[str, str]:
    if not percent:
        return "", ""
    return f"{percent:+.1f} %", "green" if percent < 0 else "red"


OFFER_COLUMNS: Columns = {
    "ID>": "product_id",
    "SHOP": "domain",
    "PRICE>": lambda offer: money(offer.price, offer.currency),
    "VS LOWEST>": lambda offer: _change(offer.percent),
    "STOCK": lambda offer: _stock(offer.availability),
    "LAST SEEN": "last_seen_at",
    "NAME…": "name",
}


def show_offers(found: Any) -> None:
    show_rows(OFFER_COLUMNS, found.items)


MOVE_COLUMNS: Columns = {
    "ID>": "product_id",
    "NAME…": "name",
    "OLD>": lambda move: money(move.old_price, move.currency),
    "NEW>": lambda move: money(move.price, move.currency),
    "CHANGE>": lambda move: _change(move.percent),
    "DOMAIN": "domain",
    "CHANGED": "price_changed_at",
}


def show_stats(stats: Any) -> None:
    counts = stats.counts
    facts = {
        "products": counts.products,
        "with a price": counts.priced,
        "with problems": counts.with_problems,
        "domains": counts.domains,
        "added in a day": counts.added_today,
        "changed in a day": counts.changed_today,
        "price changes in a day": counts.price_changes_today,
        "not seen for a week": counts.unseen_for_a_week,
    }
    show_table({"": {"style": "bold"}, " ": RIGHT}, list(facts.items()))
    _show_counts("stock", stats.availability)
    _show_counts("currency", stats.currencies)
    _show_counts("domains", stats.largest_domains)
    broken = [(f"{each.field}: {each.rule}", each.products) for each in stats.problems]
    _show_counts("problems", [ValueCount(value=rule, products=n) for rule, n in broken])
    if not counts.products:
        note("`forager products track URL` adds the first.")


def _show_counts(title: str, counts: Sequence[ValueCount]) -> None:
    if counts:
        say(f"\n{title}", "bold")
        show_table(
            {"": {}, " ": RIGHT}, [(each.value or "unknown", each.products) for each in counts]
        )


WIDTH = 60
HEIGHT = 6
_BLOCKS = " ▁▂▃▄▅▆▇█"
_STEPS = len(_BLOCKS) - 1


def chart(entries: Sequence[PriceEntry], *, now: datetime | None = None) -> list[str]:
    """The prices in the newest currency, from the oldest entry until now; nothing for one price."""
    known = [entry for entry in entries if entry.price is not None]
    shown = [entry for entry in known if entry.currency == known[-1].currency] if known else []
    amounts = [Decimal(entry.price) for entry in shown if entry.price is not None]
    if len(set(amounts)) < 2:
        return []
    end = max(now or datetime.now(UTC), shown[-1].recorded_at)
    levels = [_level(price, min(amounts), max(amounts)) for price in _sampled(shown, end)]
    first, last = (f"{at.astimezone():%Y-%m-%d}" for at in (shown[0].recorded_at, end))
    return [*_lines(levels, min(amounts), max(amounts)), f"{first} to {last}"]


def _sampled(entries: Sequence[PriceEntry], end: datetime) -> Iterator[Decimal]:
    """The price at evenly spaced moments; at each, the last one that was known."""
    times = [entry.recorded_at for entry in entries]
    span = (end - times[0]) / (WIDTH - 1)
    for column in range(WIDTH):
        place = max(bisect_right(times, times[0] + span * column), 1)
        price = entries[place - 1].price
        assert price is not None
        yield Decimal(price)


def _level(price: Decimal, low: Decimal, high: Decimal) -> int:
    """How many eighths of a line high the column is; the lowest price is one."""
    return 1 + round((price - low) / (high - low) * (HEIGHT * _STEPS - 1))


def _lines(levels: Sequence[int], low: Decimal, high: Decimal) -> Iterator[str]:
    labels = {HEIGHT - 1: amount_text(high), 0: amount_text(low)}
    width = max(map(len, labels.values()))
    for line in reversed(range(HEIGHT)):
        blocks = (_BLOCKS[min(max(level - line * _STEPS, 0), _STEPS)] for level in levels)
        yield f"{labels.get(line, ''):>{width}} {''.join(blocks)}".rstrip()
