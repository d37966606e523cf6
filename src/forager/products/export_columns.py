"""The columns of exported files, and what kind of value each holds."""

from __future__ import annotations

PRODUCT_COLUMNS = {
    "id": "int64",
    "url": "string",
    "domain": "string",
    "name": "string",
    "price": "money",
    "list_price": "money",
    "currency": "string",
    "availability": "string",
    "rating": "rating",
    "review_count": "int64",
    "brand": "string",
    "category": "string",
    "sku": "string",
    "gtin": "string",
    "problems": "int64",
    "created_at": "timestamp",
    "updated_at": "timestamp",
    "last_seen_at": "timestamp",
    "price_changed_at": "timestamp",
}
HISTORY_COLUMNS = {
    "product_id": "int64",
    "url": "string",
    "domain": "string",
    "name": "string",
    "price": "money",
    "list_price": "money",
    "currency": "string",
    "availability": "string",
    "percent": "float64",
    "recorded_at": "timestamp",
}
