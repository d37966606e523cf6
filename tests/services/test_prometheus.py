"""The alert rules, tested with Prometheus' own tool."""

from __future__ import annotations

from pathlib import Path

from services.servers.obtaining import need_packages, run

FOLDER = Path(__file__).parents[2] / "deploy/prometheus"
PROMTOOL = "/usr/bin/promtool"


def test_alert_rules_are_valid_and_fire_when_they_should() -> None:
    need_packages({PROMTOOL: "prometheus"})
    run([PROMTOOL, "check", "rules", "alerts.yml"], cwd=FOLDER)
    run([PROMTOOL, "check", "config", "--syntax-only", "prometheus.yml"], cwd=FOLDER)
    assert "SUCCESS" in run([PROMTOOL, "test", "rules", "alerts.test.yml"], cwd=FOLDER)
