"""Faults: each breaks one thing, and repairs it if it does not recover by itself."""

from chaos.faults.catalogue import FAULTS, Fault

__all__ = ["FAULTS", "Fault"]
