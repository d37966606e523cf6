"""Alembic migrations; they ship in the package so that an installed Forager can upgrade."""
