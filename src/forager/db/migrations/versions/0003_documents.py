"""Documents: sources, generations, documents, manifests, links, sections, search, active views."""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

SOURCES = """
CREATE TABLE sources (
    id                   text PRIMARY KEY,
    number               bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    base_url             text NOT NULL,
    user_id              uuid,
    published_generation bigint,
    generations          integer NOT NULL DEFAULT 0,
    text_config          text,
    keep_generations     integer NOT NULL DEFAULT 5,
    max_shrink           double precision NOT NULL DEFAULT 0.2,
    max_failed           double precision NOT NULL DEFAULT 0.1,
    kind                 text NOT NULL,
    payload              jsonb NOT NULL,
    refresh_every        integer,
    refresh_cron         text,
    next_refresh_at      timestamptz,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    deleted_at           timestamptz,
    CONSTRAINT sources_keep_generations_check CHECK (keep_generations >= 1),
    CONSTRAINT sources_gate_check CHECK (max_shrink >= 0 AND max_failed >= 0),
    CONSTRAINT sources_refresh_check CHECK (refresh_every IS NULL OR refresh_cron IS NULL),
    CONSTRAINT sources_payload_check CHECK (jsonb_typeof(payload) = 'object')
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX sources_number_key ON sources (number);
CREATE INDEX sources_user_idx ON sources (user_id);
CREATE INDEX sources_next_refresh_idx ON sources (next_refresh_at)
    WHERE next_refresh_at IS NOT NULL;

CREATE TABLE generations (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id    text NOT NULL REFERENCES sources (id),
    number       integer NOT NULL,
    state        text NOT NULL DEFAULT 'building',
    job_id       uuid,
    base_id      bigint,
    pages        integer NOT NULL DEFAULT 0,
    added        integer NOT NULL DEFAULT 0,
    changed      integer NOT NULL DEFAULT 0,
    unchanged    integer NOT NULL DEFAULT 0,
    carried_over integer NOT NULL DEFAULT 0,
    removed      integer NOT NULL DEFAULT 0,
    created_at   timestamptz NOT NULL DEFAULT now(),
    published_at timestamptz,
    retired_at   timestamptz,
    note         text,
    CONSTRAINT generations_state_check
        CHECK (state IN ('building', 'published', 'retired', 'abandoned'))
) WITH (fillfactor = 50);
CREATE UNIQUE INDEX generations_number_key ON generations (source_id, number);
CREATE UNIQUE INDEX generations_published_key ON generations (source_id)
    WHERE state = 'published';
CREATE INDEX generations_job_idx ON generations (job_id);
CREATE UNIQUE INDEX generations_building_key ON generations (job_id) WHERE state = 'building';
"""

PAGES = """
CREATE TABLE documents (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    source_id         text NOT NULL,
    url_hash          bytea NOT NULL,
    content_hash      bytea NOT NULL,
    extractor_version text NOT NULL,
    url               text NOT NULL,
    path              text COLLATE "C" NOT NULL,
    title             text,
    language          text,
    created_at        timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX documents_version_key
    ON documents (source_id, url_hash, content_hash, extractor_version);
CREATE INDEX documents_path_idx ON documents (source_id, left(path, 600), id);

CREATE TABLE generation_documents (
    generation_id  bigint NOT NULL,
    url_hash       bytea NOT NULL,
    document_id    bigint NOT NULL,
    etag           text,
    last_modified  text,
    link_set       bytea,
    segment        text,
    segment_offset bigint,
    segment_length integer,
    fetched_at     timestamptz NOT NULL,
    carried_since  timestamptz,
    carried_reason text,
    carried_times  integer,
    PRIMARY KEY (generation_id, url_hash),
    CONSTRAINT generation_documents_carried_check
        CHECK (num_nonnulls(carried_since, carried_reason, carried_times) IN (0, 3))
);
CREATE INDEX generation_documents_document_idx
    ON generation_documents (document_id, generation_id);
CREATE INDEX generation_documents_link_set_idx ON generation_documents (link_set);
CREATE INDEX generation_documents_segment_idx ON generation_documents (segment)
    WHERE segment IS NOT NULL;

CREATE TABLE link_sets (
    source_id text NOT NULL,
    hash      bytea NOT NULL,
    links     bytea NOT NULL,
    PRIMARY KEY (source_id, hash)
);

CREATE TABLE sections (
    id          uuid PRIMARY KEY,
    document_id bigint NOT NULL,
    parent_id   uuid,
    heading     text NOT NULL,
    level       smallint NOT NULL,
    anchor      text,
    content     text NOT NULL,
    position    integer NOT NULL
);
CREATE UNIQUE INDEX sections_document_idx ON sections (document_id, position);
"""

SEARCH = """
CREATE TABLE section_search (
    document_id bigint NOT NULL,
    position    integer NOT NULL,
    head_tsv    tsvector NOT NULL,
    tsv         tsvector NOT NULL,
    PRIMARY KEY (document_id, position)
);
CREATE INDEX section_search_head_idx ON section_search USING gin (head_tsv)
    WITH (gin_pending_list_limit = 16384);
CREATE INDEX section_search_idx ON section_search USING gin (tsv)
    WITH (gin_pending_list_limit = 32768);
"""

VIEWS = """
CREATE VIEW documents_active AS
SELECT s.id AS source_id, m.generation_id, d.id, m.url_hash, d.url, d.path, d.title, d.language,
       d.content_hash, d.extractor_version, m.etag, m.last_modified, m.link_set, m.segment,
       m.segment_offset, m.segment_length, m.fetched_at
  FROM sources s
  JOIN generation_documents m ON m.generation_id = s.published_generation
  JOIN documents d ON d.id = m.document_id;

CREATE VIEW sections_active AS
SELECT a.source_id, a.generation_id, a.url, a.path, a.title, a.language, c.id, c.document_id,
       c.parent_id, c.heading, c.level, c.anchor, c.content, c.position
  FROM documents_active a
  JOIN sections c ON c.document_id = a.id;
"""


def upgrade() -> None:
    for statements in (SOURCES, PAGES, SEARCH, VIEWS):
        op.execute(statements)


def downgrade() -> None:
    op.execute("DROP VIEW sections_active, documents_active")
    op.execute("DROP TABLE section_search, sections, link_sets, generation_documents, documents")
    op.execute("DROP TABLE generations, sources")
