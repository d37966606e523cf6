"""Faults: each breaks one thing, and repairs what does not recover by itself."""

from chaos.faults.catalogue import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
