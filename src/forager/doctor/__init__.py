"""The doctor: checks everything that Forager depends on, and suggests fixes."""

from forager.doctor.check import Check, Level
from forager.doctor.examination import examine

__all__ = ["Check", "Level", "examine"]
