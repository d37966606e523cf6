"""The tests of OpenSearch that depend on the protocol, with Elasticsearch 7.10.2."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from forager.settings import Search, load_settings
from services.conftest import running
from services.servers.opensearch import Elasticsearch
from services.test_opensearch import (  # noqa: F401 - tests
    test_an_entry_that_the_engine_rejects_waits,
    test_an_old_message_cannot_overwrite,
    test_filters_and_owners,
    test_further_hits_are_requested_until_enough_are_visible,
    test_products_are_sent_after_every_kind_of_change,
    test_products_by_pages,
    test_publishing_and_rolling_back_are_seen_at_once,
    test_sections_are_sent_and_deleted_sections_are_removed,
    test_the_engine_finds_words_phrases_and_names,
    test_the_mapping_is_the_one_of_the_template,
    test_the_order_is_the_one_of_the_engine,
)
from services.test_opensearch_processes import test_the_doctor_says_what_the_index_needs  # noqa: F401 - tests
from services.test_opensearch_reindex import (  # noqa: F401 - tests
    test_an_alias_that_is_missing_is_made,
    test_an_index_is_rebuilt_while_it_is_written_and_searched,
    test_writing_makes_no_index,
)


@pytest.fixture(scope="module")
def opensearch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Elasticsearch]:
    with running(Elasticsearch(tmp_path_factory.mktemp("elasticsearch"))) as server:
        yield server


def test_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORAGER_SEARCH", "elasticsearch")
    monkeypatch.setenv("FORAGER_OPENSEARCH_URL", "http://127.0.0.1:9200")
    assert load_settings().search is Search.ELASTICSEARCH
