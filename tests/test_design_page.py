"""The page for readers of the design documents names only what exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from forager.api.app import create_app
from forager.events.event import EventKind
from forager.settings import Settings
from support.cli import forager

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "design.md"
TEXT = PAGE.read_text("utf-8")
# names of the five documents, in their order; each must be found in a first column
NAMES = """
crawl_jobs job_status id payload priority status worker_id progress_percentage created_at started_at
completed_at last_heartbeat retry_count max_retries error_message source_id user_id KnowledgeAPI
job_id progress_id active_crawl_tasks uuid_generate_v4 idx_crawl_jobs_status_priority
idx_crawl_jobs_worker_heartbeat CrawlerManager ProgressTracker WorkerService worker_entrypoint.py
crawl_states frontier visited_urls total_processed current_depth updated_at crawl_visited
BatchCrawlStrategy RecursiveCrawlStrategy ResumableBatchStrategy checkpoint_callback load_state
get_crawl_state save_checkpoint upsert_crawl_state get_next_batch arun_many extract_links
add_to_frontier should_checkpoint db_client total_pending crawling_service.py supervisor.py
RateLimiter can_crawl request_count window_start domain_id proxy_id error_logs crawl_task_id
error_type stack_trace occurred_at parser_version url_hash crawl_frequency next_crawl_at
last_crawled_at crawl_delay_seconds max_concurrent_requests alembic.ini env.py config.py database.py
celery_app.py domain.py crawl_task.py product.py image.py proxy.py main.py admin.py products.py
crawl_job.py response.py crawler.py parser.py scheduler.py proxy_service.py storage_service.py
elasticsearch_service.py url_utils.py validators.py base.py amazon.py test_api test_workers
test_services test_utils docker-compose.yml requirements.txt requirements-dev.txt pytest.ini
CrawlTask Product Proxy SessionLocal get_db ProductResponse ProductFilter CrawlJobCreate
CrawlJobStatus crawl_url_task parse_product_task schedule_pending_tasks ProxyService StorageService
ElasticsearchService normalize_url hash_url validate_product_data AmazonParser BaseParser domains
domain_name base_url is_active crawl_tasks url scheduled_at html_path products product_name
description price currency availability rating review_count brand category sku content_hash metadata
images product_id image_url image_path alt_text image_type position width height file_size proxies
proxy_url proxy_port proxy_protocol proxy_username proxy_password failure_count success_count
last_used_at last_success_at last_failure_at avg_response_time_ms idx_domains_domain_name
idx_domains_is_active idx_crawl_tasks_status idx_crawl_tasks_scheduled_at idx_crawl_tasks_domain_id
idx_crawl_tasks_url_hash idx_crawl_tasks_next_crawl_at idx_products_domain_id idx_products_name
idx_products_product_name idx_products_price idx_products_availability idx_products_created_at
idx_products_url_hash idx_products_brand idx_products_category idx_images_product_id
idx_proxies_is_active idx_proxies_last_used_at idx_proxies_failure_count POSTGRES_DB ingest_domain
insert_document insert_sections activate_generation cleanup_old_generations chunk_markdown
SectionData flatten_section_tree get_sections_by_document search_sections_fts SearchResult
documents_active generation_active generation_id idx_documents_domain_active save_document_metadata
save_sections save_tree SaveResult chunker.py storage.py parent_section_id heading level content
"""
CELLS = [
    [cell.strip() for cell in line[1:-1].split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| ")
]
DOCUMENTS = "\n".join(cells[0] for cells in CELLS)
# what the page says about Forager, without the names in the documents
OURS = "\n".join(" | ".join(cells[1:]) for cells in CELLS)
CODE = re.findall(r"`([^`]+)`", re.sub(r"\[[^]]*\]\([^)]*\)", "", OURS))


def test_every_row_has_three_columns() -> None:
    assert [cells for cells in CELLS if len(cells) != 3] == []


def test_every_name_of_the_documents_is_found() -> None:
    missing = [
        name
        for name in NAMES.split()
        if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", DOCUMENTS)
    ]
    assert missing == []


@pytest.mark.parametrize("path", sorted(set(re.findall(r"\]\((\.\./[^)#]+)", TEXT))))
def test_every_linked_file_exists(path: str) -> None:
    assert (PAGE.parent / path).exists()


NAMED = re.findall(r"((?:`\w+` and )?`\w+`) in \[`[^`]+`\]\(([^)]+\.py)\)", OURS)


@pytest.mark.parametrize(("names", "path"), NAMED)
def test_every_named_function_is_in_its_file(names: str, path: str) -> None:
    code = (PAGE.parent / path).read_text("utf-8")
    for name in re.findall(r"\w+", names.replace(" and ", " ")):
        assert re.search(rf"^(?:(?:async def|def|class) {name}\b|{name}\b.* = )", code, re.M), name


@pytest.mark.parametrize(
    "command", sorted({code.removeprefix("forager ") for code in CODE if code[:8] == "forager "})
)
def test_every_named_command_exists(command: str) -> None:
    shown = forager(*(word for word in command.split() if not word.startswith("-")), "--help")
    assert shown.code == 0
    for flag in re.findall(r"--[\w-]+", command):
        assert flag in shown.out


def test_every_named_setting_exists() -> None:
    names = {found[1].lower() for code in CODE if (found := re.match(r"FORAGER_(\w+)", code))}
    assert len(names) > 10
    assert names - set(Settings.model_fields) == set()


def test_every_named_endpoint_exists(tmp_path: Path) -> None:
    unused: Any = object()
    app = create_app(Settings(home=tmp_path), unused)
    known = {
        f"{method.upper()} {path}"
        for path, methods in app.openapi()["paths"].items()
        for method in methods
    }
    named = {code for code in CODE if code.startswith(("GET ", "POST "))}
    assert len(named) > 5
    assert named - known == set()


@cache
def columns() -> set[str]:
    found = set()
    for part in (ROOT / "tests" / "db" / "schema.txt").read_text("utf-8").split("\n\n"):
        kind, name = part.split("\n", 1)[0].split()
        if kind in ("table", "view"):
            found |= {f"{name}.{column}" for column in re.findall(r"^ {4}(\w+) ", part, re.M)}
    return found


def test_every_named_column_exists() -> None:
    named = {code for code in CODE if re.fullmatch(r"[a-z_]+\.[a-z_]+", code)}
    named -= {"forager.toml", "forager.crawl", "forager.parse"} | set(EventKind)
    assert len(named) > 40
    assert named - columns() == set()


@cache
def words() -> set[str]:
    sources = [
        ROOT / "pyproject.toml",
        ROOT / "tests" / "db" / "schema.txt",
        *(ROOT / "src").rglob("*.py"),
    ]
    return {word for path in sources for word in re.findall(r"\w+", path.read_text("utf-8"))}


def test_every_other_name_occurs_in_the_code_or_the_schema() -> None:
    """Tables, indexes, fields and moves."""
    names = {code for code in CODE if re.fullmatch(r"(?!FORAGER_)[A-Za-z_]\w*( [a-z]+)?", code)}
    assert len(names) > 60
    assert {name for name in names if not set(name.split()) <= words()} == set()


def test_every_make_target_exists() -> None:
    makefile = (ROOT / "Makefile").read_text("utf-8")
    for code in CODE:
        if code.startswith("make "):
            assert re.search(rf"^{code[5:]}:", makefile, re.M), code
