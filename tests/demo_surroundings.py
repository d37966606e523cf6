"""The surroundings of the demo catalog: images, domains, proxies, parsers and webhooks."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256

from PIL import Image, ImageDraw

from forager.db.database import Database
from forager.fetch.domains.service import DomainChanges, Domains
from forager.fetch.proxies.proxy import parse_cost
from forager.fetch.proxies.service import Proxies, ProxyChanges, parse_address
from forager.fetch.robots.cache import CachedRobots
from forager.images.files import image_path, open_image_files
from forager.outbox.store import record_responses
from forager.parsers.registry import load_parsers
from forager.parsers.rollouts import roll_out
from forager.products.alerts.rules import AlertKind, NewAlert, add_alert
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.posting import PostOutcome
from forager.webhooks.service import NewWebhook, Webhooks

LAMPS, CHAIRS = "lamps.example.org", "chairs.example.com"
ROBOTS = b"""\
User-agent: *
Disallow: /cart
Disallow: /account
Crawl-delay: 2

Sitemap: https://lamps.example.org/sitemap.xml
"""
COLORS = ("#d8b04a", "#6f8fb3", "#a35f52", "#5d8a66", "#7c6aa6")


async def add_images(database: Database, settings: Settings, product_id: int) -> None:
    files = open_image_files(settings)
    for position, color in enumerate(COLORS):
        data = _picture(color, position)
        content_hash = sha256(data).digest()
        path = image_path(content_hash, "png")
        await files.put_all(path, data)
        async with database.transaction() as connection:
            values = {"hash": content_hash, "path": path, "size": len(data), "id": product_id,
                      "position": position, "type": "gallery" if position else "primary",
                      "url": f"https://{LAMPS}/img/{position}.png"}  # fmt: skip
            await connection.execute(
                """
                INSERT INTO image_files (content_hash, path, media_type, width, height, file_size)
                VALUES (%(hash)s, %(path)s, 'image/png', 600, 600, %(size)s)
                """,
                values,
            )
            await connection.execute(
                """
                INSERT INTO images (product_id, image_url, url_hash, position, status, image_path,
                                    content_hash, file_size, width, height, image_type, alt_text)
                VALUES (%(id)s, %(url)s, %(hash)s, %(position)s, 'stored', %(path)s, %(hash)s,
                        %(size)s, 600, 600, %(type)s, 'A lamp')
                """,
                values,
            )


def _picture(color: str, turn: int) -> bytes:
    image = Image.new("RGB", (600, 600), "#f4f2ec")
    draw = ImageDraw.Draw(image)
    lean = 30 * (turn - 2)
    draw.ellipse((200, 500, 400, 540), fill="#3b3b3b")
    draw.line((300, 515, 300 + lean, 260), fill="#3b3b3b", width=14)
    draw.polygon(
        [(230 + lean, 150), (370 + lean, 150), (430 + lean, 300), (170 + lean, 300)], fill=color
    )
    data = io.BytesIO()
    image.save(data, "PNG")
    return data.getvalue()


def cached_robots() -> CachedRobots:
    now = datetime.now(UTC)
    return CachedRobots(ROBOTS, now - timedelta(hours=5), now + timedelta(hours=19), 200)


async def add_domains_and_proxies(database: Database, settings: Settings) -> None:
    domains = Domains(database)
    await domains.set(LAMPS, DomainChanges(delay=2.0, concurrency=2, currency="EUR",
                                           every=timedelta(hours=12)))  # fmt: skip
    await domains.set(CHAIRS, DomainChanges(region="eu"))
    proxies = Proxies(database, Vault(settings))
    for number, price, region in ((1, "3.50/GB", "eu"), (2, "0.0004/request", None),
                                  (3, "25/GB", "us"), (4, None, None)):  # fmt: skip
        address = parse_address(f"http://forager:demo@proxy{number}.example.net:3128")
        cost = None if price is None else parse_cost(price)
        added = await proxies.add(address)
        await proxies.set(added.id, ProxyChanges(region=region, cost=cost))
    async with database.transaction() as connection:
        await connection.execute(
            """
            UPDATE domains SET slow_delay = 6, blocked_until = now() + interval '14 min'
             WHERE domain_name = %s
            """,
            (CHAIRS,),
        )
        await connection.execute(
            """
            UPDATE proxies
               SET success_count = 900 * id, total_failures = 30 * (id - 1) * (id - 1),
                   avg_response_time_ms = 210 + 85 * id, last_used_at = now() - interval '40 s',
                   last_success_at = now() - interval '41 s',
                   last_failure_at = CASE WHEN id > 1 THEN now() - interval '9 min' END,
                   last_failure_reason = CASE WHEN id > 1 THEN 'connection refused' END
            """
        )
        await connection.execute(
            """
            UPDATE proxies SET is_active = false, disabled_reason = '11 failures in a row',
                   failure_count = 11, consecutive_failures = 11,
                   next_probe_at = now() + interval '50 min'
             WHERE id = (SELECT max(id) FROM proxies)
            """
        )
        await connection.execute(
            """
            INSERT INTO proxy_usage (day, domain_name, proxy_id, requests, bytes)
            SELECT current_date - back, domain, p.id, 40 + 13 * p.id + back,
                   (40 + 13 * p.id + back) * 61000 * length(domain)
              FROM proxies p, unnest(%s::text[]) AS domain, generate_series(0, 20) AS back
             WHERE p.region IS DISTINCT FROM 'us'
            """,
            ([LAMPS, CHAIRS],),
        )
        await connection.execute("UPDATE proxies SET created_at = now() - interval '60 days'")


async def roll_out_parsers(database: Database, settings: Settings) -> None:
    load_parsers(settings.parser_modules)
    await roll_out(database, settings, "kiosk", "1")
    await roll_out(database, settings, "kiosk", "2", canary=0.1)
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO parse_rates (domain_id, parser, parser_version, role, day, pages, good)
            SELECT domain_id, parser, version, role, current_date - day, 240, good
              FROM (SELECT id, domain_name FROM domains) d
              JOIN (VALUES ('lamps.example.org', 'generic', '1', 'active', 236),
                           ('chairs.example.com', 'generic', '1', 'active', 221),
                           ('kiosk.example', 'kiosk', '1', 'active', 171),
                           ('kiosk.example', 'kiosk', '2', 'canary', 232)
                   ) AS r (domain, parser, version, role, good) ON r.domain = d.domain_name
             CROSS JOIN generate_series(1, 6) AS day
             CROSS JOIN LATERAL (SELECT d.id AS domain_id) x
            ON CONFLICT DO NOTHING
            """
        )


async def add_webhooks(database: Database, settings: Settings) -> tuple[int, int]:
    webhooks = Webhooks(database, Vault(settings))
    kinds = ("product.price_changed", "product.availability_changed")
    made = await webhooks.add(NewWebhook("https://hooks.example.org/prices", kinds))
    other = await webhooks.add(NewWebhook("https://ops.example.org/alerts", ("parser.degraded",)))
    await webhooks.disable(other.webhook.id, "it answered 410 Gone")
    await webhooks.add(NewWebhook("mailto:prices@example.org"))
    await add_alert(database, NewAlert(AlertKind.PRICE_BELOW, amount=Decimal(40), currency="EUR"))
    await add_alert(database, NewAlert(AlertKind.BACK_IN_STOCK, brand="Lumen & Co"))
    async with database.transaction() as connection:
        await connection.execute(
            """
            INSERT INTO outbox (topic, ref_id, lane, created_at, due_at, attempts,
                                last_error, sent_at, given_up_at)
            SELECT 'webhooks', e.id, %s, e.occurred_at, e.occurred_at,
                   CASE WHEN bad THEN 8 ELSE 1 END,
                   CASE WHEN bad THEN 'it answered 500 Internal Server Error' END,
                   CASE WHEN NOT bad THEN e.occurred_at + interval '1 s' END,
                   CASE WHEN bad THEN e.occurred_at + interval '2 days' END
              FROM (SELECT id, occurred_at, id %% 9 = 4 AS bad FROM catalog_events
                     WHERE kind IN ('product.price_changed', 'product.availability_changed')
                     ORDER BY id DESC LIMIT 14) e
             ORDER BY e.id
            """,
            (made.webhook.id,),
        )
        cursor = await connection.execute("SELECT max(id) FROM outbox WHERE last_error IS NOT NULL")
        [(message_id,)] = await cursor.fetchall()
        posted = PostOutcome(
            500, "the receiver answered 500", 0.34, None, {"Server": "nginx"}, '{"error": "full"}'
        )
        for attempt in (6, 7, 8):
            await record_responses(connection, {message_id: posted.record(attempt)})
    return made.webhook.id, message_id
