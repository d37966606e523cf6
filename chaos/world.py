"""The parts of the system that a fault can affect."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from uuid import UUID

from chaos.cluster import Cluster
from chaos.control import Control
from chaos.site import Site
from chaos.user import User


@dataclass(frozen=True, slots=True)
class World:
    """All running parts, and the random generator of a fault."""

    site: Site
    cluster: Cluster
    control: Control
    user: User
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Hit:
    """The effect of a fault: description, affected jobs (none: possibly all), and duration."""

    what: str
    jobs: frozenset[UUID] = field(default_factory=frozenset)
    lasted: float = 0.0
