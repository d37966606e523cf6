"""Faults: each breaks one thing, and mends what would not mend itself."""

from chaos.faults.catalogue import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
