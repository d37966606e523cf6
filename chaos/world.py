"""What a fault can reach."""

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
    """Everything that runs, and the chance by which things happen."""

    site: Site
    cluster: Cluster
    control: Control
    user: User
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Hit:
    """What a fault did: in words, which jobs it hit (none: it may have hit all), for how long."""

    what: str
    jobs: frozenset[UUID] = field(default_factory=frozenset)
    lasted: float = 0.0
