"""The crawl's SQL. A batch touches only its own rows: its cost does not grow with the crawl."""

from forager.crawl.store.ends import (
    ArchivedPage,
    fail_visited,
    key_ranges,
    make_pages,
    repoint_copies,
    select_archived,
    select_first_troubles,
    select_left_copies,
    select_pointers,
)
from forager.crawl.store.frontier import (
    delete_entries,
    insert_entries,
    postpone_entries,
    select_entries,
    select_next_retry,
    select_retries,
)
from forager.crawl.store.known import Known, select_known_frontier, select_known_visited
from forager.crawl.store.state import (
    insert_state,
    purge,
    select_orphaned_jobs,
    select_state,
    select_states,
    update_state,
)
from forager.crawl.store.visited import (
    delete_visited,
    insert_visited,
    replace_contents,
    select_expected_url,
    select_url_of_content,
    settled_as_page,
)

__all__ = [
    "ArchivedPage",
    "Known",
    "delete_entries",
    "delete_visited",
    "fail_visited",
    "insert_entries",
    "insert_state",
    "insert_visited",
    "key_ranges",
    "make_pages",
    "postpone_entries",
    "purge",
    "replace_contents",
    "repoint_copies",
    "select_archived",
    "select_entries",
    "select_expected_url",
    "select_first_troubles",
    "select_known_frontier",
    "select_known_visited",
    "select_left_copies",
    "select_next_retry",
    "select_orphaned_jobs",
    "select_pointers",
    "select_retries",
    "select_state",
    "select_states",
    "select_url_of_content",
    "settled_as_page",
    "update_state",
]
