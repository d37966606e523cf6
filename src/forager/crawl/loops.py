"""Redirects that lead back to themselves, seen only when all of them are known."""

from __future__ import annotations

from collections.abc import Sequence

from forager.extract.keys import url_key


def redirect_loops(redirects: Sequence[tuple[bytes, str]]) -> list[bytes]:
    """The keys of all URLs whose redirects never end at a page, from (key, target) pairs."""
    targets = {key: url_key(target) for key, target in redirects}
    ends: dict[bytes, bool] = {}  # whether a chain that comes here ends
    for start in targets:
        path: list[bytes] = []
        on_path: set[bytes] = set()
        place = start
        while place in targets and place not in ends and place not in on_path:
            path.append(place)
            on_path.add(place)
            place = targets[place]
        verdict = ends.get(place, place not in on_path)
        ends.update(dict.fromkeys(path, verdict))
    return [key for key, ended in ends.items() if not ended]
