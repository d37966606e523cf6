"""The prepared queries on a ClickHouse server: the same answers as from files."""

from __future__ import annotations

from uuid import uuid4

import pytest
from pydantic import SecretStr

from analytics.test_prepared_queries import (  # noqa: F401 - tests and their fixture
    folder,
    test_a_cut_answer_says_so,
    test_an_empty_lake_is_answered_too,
    test_crawl_cost_by_domain_and_proxy,
    test_each_currency_has_its_row,
    test_pages_of_site_crawls_cost_as_well,
    test_parser_quality_day_by_day,
    test_price_changes_by_brand,
    test_the_longest_time_has_answers,
    test_the_newest_version_of_a_product_counts,
)
from forager.settings import Settings
from services.servers.clickhouse import ClickHouseServer


@pytest.fixture
def settings(settings: Settings, clickhouse: ClickHouseServer) -> Settings:
    name = f"test_{uuid4().hex}"
    clickhouse.run(f"CREATE DATABASE {name}")
    return settings.model_copy(update={"clickhouse_url": SecretStr(clickhouse.url(name))})
