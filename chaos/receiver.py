"""A webhook receiver that rejects some messages and records those it accepted."""

from __future__ import annotations

import json

from chaos.randomness import generator_for
from forager.webhooks.signing import HEADER, InvalidSignature, verify_signature

REFUSED = 0.04


class Receiver:
    """`secret` is set after the webhook was added; timestamps of senders are not checked."""

    def __init__(self, seed: int) -> None:
        self.secret = ""
        self.taken: set[int] = set()
        self.twice = 0
        self.forged: list[str] = []
        self._chance = generator_for(seed, "receiver")

    def receive(self, headers: dict[str, str], body: bytes) -> int:
        """Return the HTTP status."""
        if self._chance.random() < REFUSED:
            return 500
        try:
            verify_signature(self.secret, headers.get(HEADER.lower(), ""), body, float("inf"))
        except InvalidSignature as error:
            self.forged.append(error.message)
            return 400
        event = json.loads(body)["id"]
        self.twice += event in self.taken
        self.taken.add(event)
        return 204
