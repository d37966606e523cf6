"""The doctor: looks at everything Forager stands on, and says what to do about what it finds."""

from forager.doctor.check import Check, Level
from forager.doctor.examination import examine

__all__ = ["Check", "Level", "examine"]
