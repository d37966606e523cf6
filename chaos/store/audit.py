"""Audit triggers that record the writer and the lease of each write.

They are in a separate schema, and do not change the behavior of Forager.
"""

from __future__ import annotations

from forager.db.database import Connection

_TABLES = """
CREATE SCHEMA chaos;
CREATE TABLE chaos.commits (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    job_id uuid,
    what   text NOT NULL,
    -- the lease of the writer, and what the row says at that moment
    lease  bigint,
    held   bigint
);
CREATE INDEX ON chaos.commits (at);
CREATE INDEX ON chaos.commits (id) WHERE lease <> held;
CREATE TABLE chaos.manifests (
    source_id     text NOT NULL,
    generation_id bigint NOT NULL,
    documents     bigint[] NOT NULL,
    PRIMARY KEY (generation_id)
);
"""

# runners: each commit writes the state of its crawl. Reports of many crawls in one statement, which
# say what each one waits for, are no commits and leave `updated_at` as it is.
_NOTE_COMMIT = """
CREATE FUNCTION chaos.note_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.commits (job_id, what, lease, held)
    SELECT NEW.job_id, 'batch', nullif(current_setting('chaos.lease', true), '')::bigint, j.lease
      FROM crawl_jobs j WHERE j.id = NEW.job_id;
    RETURN NULL;
END $$;
CREATE TRIGGER note_commit AFTER INSERT OR UPDATE OF updated_at ON crawl_states
    FOR EACH ROW EXECUTE FUNCTION chaos.note_commit();
"""

_NOTE_MOVE = """
CREATE FUNCTION chaos.note_move() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.commits (job_id, what, lease, held)
    VALUES (NEW.id, NEW.status, CASE WHEN NEW.status = 'completed'
            THEN nullif(current_setting('chaos.lease', true), '')::bigint END, OLD.lease);
    RETURN NULL;
END $$;
CREATE TRIGGER note_move AFTER UPDATE ON crawl_jobs
    FOR EACH ROW WHEN (OLD.status <> NEW.status AND NEW.status NOT IN ('pending', 'processing'))
    EXECUTE FUNCTION chaos.note_move();
"""

# a retry of a crawl that shared its runner, with the cause that its history states
_NOTE_RETRY = """
CREATE FUNCTION chaos.note_retry() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.commits (job_id, what) VALUES (NEW.id, 'retry');
    RETURN NULL;
END $$;
CREATE TRIGGER note_retry AFTER UPDATE ON crawl_jobs
    FOR EACH ROW WHEN (NEW.retry_count > OLD.retry_count AND NOT OLD.own_runner
                       AND NEW.kind = 'crawl')
    EXECUTE FUNCTION chaos.note_retry();
"""

# task workers: an attempt contains its lease
_NOTE_ATTEMPT = """
CREATE FUNCTION chaos.note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.commits (what, lease, held)
    SELECT 'task ' || t.id, NEW.lease, t.lease FROM crawl_tasks t WHERE t.id = NEW.task_id;
    RETURN NULL;
END $$;
CREATE TRIGGER note_attempt AFTER INSERT ON task_attempts
    FOR EACH ROW WHEN (NEW.outcome NOT IN ('lost', 'withdrawn'))
    EXECUTE FUNCTION chaos.note_attempt();
"""

_NOTE_MANIFEST = """
CREATE FUNCTION chaos.note_manifest() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO chaos.manifests (source_id, generation_id, documents)
    SELECT NEW.source_id, NEW.id, array_agg(d.document_id ORDER BY d.document_id)
      FROM generation_documents d WHERE d.generation_id = NEW.id
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
CREATE TRIGGER note_manifest AFTER UPDATE ON generations
    FOR EACH ROW WHEN (NEW.state = 'published' AND OLD.state <> 'published')
    EXECUTE FUNCTION chaos.note_manifest();
"""


async def install(connection: Connection) -> None:
    for statement in (
        _TABLES,
        _NOTE_COMMIT,
        _NOTE_MOVE,
        _NOTE_RETRY,
        _NOTE_ATTEMPT,
        _NOTE_MANIFEST,
    ):
        await connection.execute(statement.encode())


async def set_lease(connection: Connection, number: int) -> None:
    """Set the lease under which the transaction writes; the triggers compare it."""
    await connection.execute("SELECT set_config('chaos.lease', %s, true)", (str(number),))
