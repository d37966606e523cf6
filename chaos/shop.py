"""A shop whose prices only rise, so that a write of an old price is detected."""

from __future__ import annotations

from decimal import Decimal

from chaos.randomness import generator_for

PAGE = """<!doctype html><html lang="en"><head><title>{name}</title>
<script type="application/ld+json">{{"@context": "https://schema.org", "@type": "Product",
"name": "{name}", "sku": "{name}", "offers": {{"@type": "Offer", "price": "{price}",
"priceCurrency": "EUR", "availability": "https://schema.org/InStock"}}}}</script></head>
<body><h1>{name}</h1></body></html>"""
# every third page answers 304 to a conditional request
TAGGED_EACH = 3


class Shop:
    """Products by name, their current versions, and the versions that were served."""

    def __init__(self, seed: int, products: int) -> None:
        self.versions = {f"p{n}": 0 for n in range(products)}
        self.served: dict[str, set[int]] = {name: set() for name in self.versions}
        self._chance = generator_for(seed, "prices")

    def raise_prices(self) -> None:
        """Raise the prices of some products."""
        for name in self._chance.sample(list(self.versions), max(1, len(self.versions) // 10)):
            self.versions[name] += 1

    def price(self, name: str, version: int | None = None) -> Decimal:
        number = int(name.removeprefix("p"))
        shown = self.versions[name] if version is None else version
        return Decimal(10 + number) + Decimal(shown) / 100

    def page(self, name: str) -> tuple[bytes, str | None]:
        """Return the page and its ETag."""
        version = self.versions[name]
        self.served[name].add(version)
        body = PAGE.format(name=name, price=self.price(name, version)).encode()
        tagged = int(name.removeprefix("p")) % TAGGED_EACH == 0
        return body, f'"{name}-{version}"' if tagged else None
