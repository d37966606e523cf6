"""Rows for every page of the catalog, with hostile names."""

from __future__ import annotations

from dataclasses import dataclass

from forager.db.database import Database
from forager.fetch.proxies.service import Proxies, parse_address
from forager.secrets import Vault
from forager.settings import Settings
from forager.webhooks.service import NewWebhook, Webhooks
from images.stored_image import store_image
from products.rows import add_product, insert_domain

HOSTILE = '"><script>alert(1)</script><img src=x onerror=alert(2)>'


@dataclass(frozen=True, slots=True)
class Catalog:
    product_id: int
    task_id: int
    error_id: int
    webhook_id: int
    proxy_id: int

    def pages(self) -> list[str]:
        """Every page of the catalog, with something on it."""
        return [
            "/products", "/products?q=alert", "/products?brand=none", "/products?domain=no.example",
            f"/products/{self.product_id}", f"/products/{self.product_id}/history",
            "/track", "/tasks", "/tasks?status=failed&domain=shop.example",
            "/tasks?domain=no.example", f"/tasks/{self.task_id}", "/errors", "/errors/list",
            f"/errors/{self.error_id}", "/dead-letters", "/domains", "/domains?slowed=yes",
            "/domains/shop.example", "/proxies", f"/proxies/{self.proxy_id}", "/parsers",
            "/webhooks", f"/webhooks/{self.webhook_id}",
        ]  # fmt: skip


async def fill(database: Database, settings: Settings) -> Catalog:
    product_id = await add_product(database, 1)
    await store_image(database, settings, product_id)
    webhooks = Webhooks(database, Vault(settings))
    issued = await webhooks.add(NewWebhook("https://receiver.example/hooks"))
    added = await Proxies(database, Vault(settings)).add(
        parse_address("http://somebody:secret@proxy.example:3128")
    )
    async with database.transaction() as connection:
        domain_id = await insert_domain(connection)
        await connection.execute(
            """
            UPDATE products
               SET product_name = %(text)s, description = %(text)s, brand = %(text)s,
                   category = %(text)s, sku = %(text)s,
                   evidence = jsonb_build_object('price',
                       jsonb_build_object('confidence', 0.9, 'origin', %(text)s::text)),
                   problems = jsonb_build_array(jsonb_build_object('field', 'price',
                       'rule', 'jump', 'message', %(text)s::text, 'severity', 'doubt')),
                   variants = jsonb_build_array(jsonb_build_object('name', %(text)s::text)),
                   tsv = to_tsvector('simple', 'alert')
             WHERE id = %(id)s
            """,
            {"text": HOSTILE, "id": product_id},
        )
        await connection.execute(
            "UPDATE domains SET slow_delay = 3, blocked_until = now() + interval '1 hour'"
        )
        cursor = await connection.execute(
            """
            UPDATE crawl_tasks SET status = 'failed', error_kind = 'parse', error_message = %s,
                   next_crawl_at = NULL
            RETURNING id
            """,
            (HOSTILE,),
        )
        [(task_id,)] = await cursor.fetchall()
        cursor = await connection.execute(
            """
            INSERT INTO error_logs (crawl_task_id, domain_id, stage, error_type, error_kind,
                                    error_message, message_key, url, stack_trace)
            VALUES (%(task)s, %(domain)s, 'parse', 'parse', 'parse', %(text)s, %(text)s,
                    'https://shop.example/p/1', %(text)s)
            RETURNING id
            """,
            {"task": task_id, "domain": domain_id, "text": HOSTILE},
        )
        [(error_id,)] = await cursor.fetchall()
        await connection.execute(
            """
            INSERT INTO dead_letters (task_id, domain_id, url, stage, error_type, error_kind,
                                      error_message, message_key, attempts)
            VALUES (%(task)s, %(domain)s, 'https://shop.example/p/1', 'parse', 'parse', 'parse',
                    %(text)s, %(text)s, 4)
            """,
            {"task": task_id, "domain": domain_id, "text": HOSTILE},
        )
    return Catalog(product_id, task_id, error_id, issued.webhook.id, added.id)
