"""A receiver of webhooks that refuses some, and remembers what it has taken."""

from __future__ import annotations

import json

from chaos.chance import seeded
from forager.webhooks.signing import HEADER, InvalidSignature, verify

REFUSED = 0.04


class Receiver:
    """`secret` is known when the webhook has been added; clocks of senders are not looked at."""

    def __init__(self, seed: int) -> None:
        self.secret = ""
        self.taken: set[int] = set()
        self.twice = 0
        self.forged: list[str] = []
        self._chance = seeded(seed, "receiver")

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        """The status to answer."""
        if self._chance.random() < REFUSED:
            return 500
        try:
            verify(self.secret, headers.get(HEADER.lower(), ""), body, float("inf"))
        except InvalidSignature as error:
            self.forged.append(error.message)
            return 400
        event = json.loads(body)["id"]
        self.twice += event in self.taken
        self.taken.add(event)
        return 204
