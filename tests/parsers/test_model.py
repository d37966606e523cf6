"""The optional model: asked only for what rules miss, and believed only where the page says it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from forager.db.database import Database
from forager.extract.product.product import FieldName, Product
from forager.parsers import model as module
from forager.parsers.checks import check_model
from forager.parsers.model import MAX_TOKENS, FieldModel, with_quotes
from forager.parsers.page_cache import CachedPage
from forager.parsers.reading import Parsed, ReadingPool
from forager.parsers.store.model_usage import ModelUsage, select_usage
from forager.settings import Settings
from parsers.archived_kiosk import Kiosk
from tasks.working import Tasks, at_work

PAGE = """<html lang="en"><head><title>Brass lamp</title>
<script type="application/ld+json">{"@type": "Product", "name": "Brass lamp", "sku": "L-1",
"image": "https://shop.example/l.jpg", "description": "A lamp."}</script></head>
<body><h1>Brass lamp</h1><p>It is yours this week for €49.90 and it was designed in Turin.</p>
<p>Shipping from €5.90. All of us remember that it was €60.00 last year.</p>
<button>Add to cart</button></body></html>"""


@dataclass
class Endpoint:
    """An OpenAI-compatible server that answers with these quotes."""

    url: str = ""
    quotes: Any = field(default_factory=dict)
    # instead of an answer with quotes
    body: str | None = None
    asked: list[dict[str, Any]] = field(default_factory=list)
    answers: asyncio.Event = field(default_factory=asyncio.Event)

    async def complete(self, request: web.Request) -> web.Response:
        if request.headers.get("authorization") != "Bearer secret":
            return web.json_response({"error": "no"}, status=401)
        self.asked.append(await request.json())
        await self.answers.wait()
        if self.body is not None:
            return web.Response(text=self.body, content_type="application/json")
        message = {"role": "assistant", "content": orjson.dumps(self.quotes).decode()}
        usage = {"prompt_tokens": 200, "completion_tokens": 20}
        return web.json_response({"choices": [{"message": message}], "usage": usage})


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    endpoint = Endpoint()
    endpoint.answers.set()
    app = web.Application()
    app.router.add_post("/v1/chat/completions", endpoint.complete)
    async with TestServer(app) as server:
        endpoint.url = str(server.make_url("/v1"))
        yield endpoint


@pytest.fixture
def asking(settings: Settings, endpoint: Endpoint) -> Settings:
    given = {
        "product_model": endpoint.url, "product_model_name": "small", "product_model_cost": 2.0,
        "product_model_key": SecretStr("secret"),
    }  # fmt: skip
    return settings.model_copy(update=given)


async def read(settings: Settings, html: str = PAGE) -> Parsed:
    page = CachedPage("https://shop.example/lamp", "text/html; charset=utf-8", html.encode())
    async with ReadingPool(settings) as pool:
        return await pool.parse(page, {})


async def completed(database: Database, settings: Settings, html: str = PAGE) -> Parsed:
    return await FieldModel(database, settings).complete(await read(settings, html))


async def test_it_is_off_by_default(
    database: Database, settings: Settings, endpoint: Endpoint
) -> None:
    parsed = await completed(database, settings)
    assert parsed.product is not None
    assert (parsed.product.price, parsed.text) == (None, None)
    assert endpoint.asked == []
    assert "off" in str(await check_model(database, settings))


async def test_a_missing_price_is_taken_from_a_quote_and_marked(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    endpoint.quotes = {"price": "for €49.90", "brand": "Lumenworks", "sku": "other"}
    model = FieldModel(database, asking)
    parsed = await read(asking)
    for _ in range(2):  # the same question is asked once
        product = (await model.complete(parsed)).product
        assert product is not None
        assert (product.price, product.currency) == (Decimal("49.90"), "EUR")
        assert (product.evidence["price"].origin, product.evidence["price"].confidence) == (
            "model:small", 0.5,
        )  # fmt: skip
        # the page has no such brand, and the SKU was known
        assert (product.brand, product.sku) == (None, "L-1")
    [question] = endpoint.asked
    assert "Shipping from" in question["messages"][1]["content"]
    assert await database.run(select_usage) == ModelUsage(1, 0, 200, 20)
    assert "220 of 1,000,000 tokens, cost 0.00" in str(await check_model(database, asking))


@pytest.mark.parametrize(
    "quote",
    ["€49.95", "9.90", "€49", "€5.9", "Shipping from €5.90", "€5.90", "It was €60.00",
     "€60.00 last", "", None, 49.9, {"a": 1}, "€49.90 and €60.00", "x" * 10_000],
)  # fmt: skip
async def test_what_the_page_does_not_say_about_its_price_is_dropped(
    database: Database, asking: Settings, endpoint: Endpoint, quote: object
) -> None:
    endpoint.quotes = {"price": quote}
    parsed = await completed(database, asking)
    assert parsed.product is not None
    assert parsed.product.price is None
    assert "price" not in parsed.product.evidence


@pytest.mark.parametrize("answer", ["no object", [1], 7, None])
async def test_an_answer_that_is_no_object_counts_as_failed(
    database: Database, asking: Settings, endpoint: Endpoint, answer: object
) -> None:
    endpoint.quotes = answer
    parsed = await completed(database, asking)
    assert parsed.product is not None
    assert parsed.product.price is None
    assert (await database.run(select_usage)).failures == 1


@pytest.mark.parametrize(
    "body",
    ["{", "[]", '{"choices": []}', '{"choices": [{}]}', '{"error": "no"}',
     '{"choices": [{"message": {"content": "{}"}}], "usage": [1]}',
     '{"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": Infinity}}'],
)  # fmt: skip
async def test_a_body_that_is_no_answer_counts_as_failed(
    database: Database, asking: Settings, endpoint: Endpoint, body: str
) -> None:
    endpoint.body = body
    assert (await completed(database, asking)).product == (await read(asking)).product
    usage = await database.run(select_usage)
    assert (usage.requests, usage.failures, usage.completion_tokens) == (1, 1, 400)
    assert 30 < usage.prompt_tokens < 200


async def test_answers_that_are_not_valid_count_for_the_limit_of_the_day(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    """A shop whose text confuses the model must not cost without limit."""
    endpoint.quotes = "no object"
    limited = asking.model_copy(update={"product_model_daily_tokens": 1000})
    for number in range(4):
        await completed(database, limited, PAGE.replace("Turin", f"Turin {number}"))
    assert len(endpoint.asked) == 2


async def test_a_request_that_is_not_answered_in_time_has_its_cost(
    database: Database, asking: Settings, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    endpoint.answers.clear()
    monkeypatch.setattr(module, "TIMEOUT", 0.2)
    await completed(database, asking)
    endpoint.answers.set()
    usage = await database.run(select_usage)
    assert (usage.failures, usage.completion_tokens) == (1, 400)


async def test_the_tokens_that_a_server_reports_are_bounded(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    answer = {"choices": [{"message": {"content": "{}"}}], "usage": {"prompt_tokens": 10**30}}
    endpoint.body = json.dumps(answer)
    await completed(database, asking)
    assert (await database.run(select_usage)).prompt_tokens == MAX_TOKENS


async def test_an_answer_without_quotes_is_remembered_too(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    model, parsed = FieldModel(database, asking), await read(asking)
    for _ in range(2):
        await model.complete(parsed)
    assert len(endpoint.asked) == 1


async def test_a_server_that_fails_is_not_asked_for_a_while(
    database: Database, asking: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise, every page would wait for the time limit of a request."""
    dead = asking.model_copy(update={"product_model": "http://127.0.0.1:1/v1"})
    model, parsed = FieldModel(database, dead), await read(dead)
    for _ in range(3):
        assert (await model.complete(parsed)).product == parsed.product
    assert await database.run(select_usage) == ModelUsage(1, 1, 0, 0)
    monkeypatch.setattr(module, "PAUSE", 0.0)
    model = FieldModel(database, dead)
    for _ in range(2):
        await model.complete(parsed)
    assert await database.run(select_usage) == ModelUsage(3, 3, 0, 0)


@pytest.mark.parametrize(
    ("text", "quote", "price"),
    [
        ("1 299,00 €", "299,00 €", None),
        ("€1 299", "€1", None),
        ("4.5 19.99 €", "19.99 €", "19.99"),
        # in lower case, this letter is two characters
        (f"{'İ' * 60} was €60.00 now €49.90", "€49.90", "49.90"),
        (f"{'İ' * 60} was €60.00 now €49.90", "€60.00", None),
    ],
)
def test_quotes_are_whole_amounts_at_their_place(text: str, quote: str, price: str | None) -> None:
    parsed = Parsed("generic", "1", Product(), None, text=text)
    found = with_quotes(parsed, (FieldName.PRICE,), {"price": quote}, "model:small")
    assert found.price == (None if price is None else Decimal(price))


async def test_a_server_that_refuses_changes_nothing(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    refused = asking.model_copy(update={"product_model_key": None})
    assert (await completed(database, refused)).product == (await read(refused)).product
    assert await database.run(select_usage) == ModelUsage(1, 1, 0, 0)


async def test_a_day_has_a_limit_of_tokens(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    endpoint.quotes = {"price": "€49.90"}
    limited = asking.model_copy(update={"product_model_daily_tokens": 700})
    found = []
    for number in range(4):  # each is expected to cost about 450 tokens, and costs 220
        parsed = await completed(database, limited, PAGE.replace("Turin", f"Turin {number}"))
        assert parsed.product is not None
        found.append(parsed.product.price is not None)
    assert found == [True, True, False, False]
    assert len(endpoint.asked) == 2


async def test_pages_with_price_and_name_and_pages_without_a_product_are_not_sent(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    priced = PAGE.replace('"sku"', '"offers": {"price": "3", "priceCurrency": "EUR"}, "sku"')
    for html in (priced, "<html><body><h1>About us</h1><p>We sell lamps.</p></body></html>"):
        await completed(database, asking, html)
    assert endpoint.asked == []


async def test_a_worker_stores_the_value_with_its_origin(
    database: Database, asking: Settings, endpoint: Endpoint
) -> None:
    endpoint.quotes = {"price": "€49.90"}
    shop = Kiosk(database, asking)
    await shop.archive([(1, PAGE.encode())])
    tasks = Tasks(database, asking)
    async with at_work(tasks):
        await tasks.all_when(shop.task_ids, "completed")
    rows = await tasks.sql("SELECT price, evidence -> 'price' ->> 'origin' FROM products")
    assert rows == [(Decimal("49.90"), "model:small")]
