-- The journal is the truth; the other tables are what it says, laid out for looking up.
-- Text sorts by code point, as in SQLite, whatever the language of the server: hence COLLATE "C".
-- Before there are statistics the planner finds all indexes alike and takes the youngest, so the index that is asked for
-- most often is made last.

CREATE TABLE event (
    workspace text COLLATE "C" NOT NULL,
    seq       bigint NOT NULL CHECK (seq > 0),
    kind      text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    run       text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    task      text COLLATE "C" NOT NULL,
    agent     text COLLATE "C" NOT NULL,
    data      text COLLATE "C" NOT NULL,
    op        text COLLATE "C",
    answer    text COLLATE "C",
    hash      text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, seq)
);

CREATE INDEX event_run ON event (workspace, run) WHERE run <> '';
-- An operation id is used once: the second time finds the first one's answer.
CREATE UNIQUE INDEX event_op ON event (workspace, op) WHERE op IS NOT NULL;

CREATE TABLE task (
    workspace  text COLLATE "C" NOT NULL,
    id         text COLLATE "C" NOT NULL,
    run        text COLLATE "C" NOT NULL,
    parent     text COLLATE "C" NOT NULL,
    session    text COLLATE "C" NOT NULL,
    holder     text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL,
    asked_how  text COLLATE "C" NOT NULL,
    led_as     text COLLATE "C" NOT NULL,
    worker     text COLLATE "C" NOT NULL,
    fence      bigint NOT NULL,
    attempt    bigint NOT NULL,
    failures   bigint NOT NULL,
    asked_at   bigint NOT NULL,
    ready_at   bigint NOT NULL,
    claimed_at bigint,
    until      bigint NOT NULL,
    ended_at   bigint,
    began      bigint NOT NULL,
    ended      bigint,
    dedup_key  text COLLATE "C" NOT NULL,
    CHECK ((ended IS NULL) = (state IN ('pending', 'running', 'waiting', 'cancelling'))),
    CHECK (ended IS NULL OR state IN ('completed', 'failed', 'cancelled', 'dead'))
);

CREATE INDEX task_session ON task (workspace, session) WHERE parent = '';
CREATE INDEX task_began ON task (workspace, began);
CREATE INDEX task_root ON task (workspace, began) WHERE parent = '';
CREATE INDEX task_dedup_key ON task (workspace, dedup_key) WHERE dedup_key <> '';
CREATE INDEX task_held ON task (workspace, worker) WHERE ended IS NULL;
CREATE INDEX task_pending ON task (workspace, holder, began) WHERE state = 'pending';
CREATE INDEX task_resuming ON task (workspace, holder) WHERE state = 'pending' AND worker <> '';
CREATE INDEX task_running ON task (workspace, holder, until) WHERE state = 'running';
CREATE INDEX task_parent ON task (workspace, parent) WHERE parent <> '';
ALTER TABLE task ADD PRIMARY KEY (workspace, id);

-- What a whole run has come to besides its root. Guards read it at every hop, so it is counted as events are written.
CREATE TABLE run (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    members   text COLLATE "C" NOT NULL,
    tasks     bigint NOT NULL,
    handoffs  bigint NOT NULL,
    tokens    bigint NOT NULL,
    refusals  bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);

CREATE TABLE entry (
    workspace  text COLLATE "C" NOT NULL,
    namespace  text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    form       text COLLATE "C" NOT NULL CHECK (form IN ('text', 'json')),
    value      text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    expires_at bigint,
    version    bigint NOT NULL CHECK (version > 0),
    digest     text COLLATE "C" NOT NULL,
    extension  bigint,
    trust      text COLLATE "C" NOT NULL CHECK (trust IN ('trusted', 'untrusted')),
    task       text COLLATE "C" NOT NULL,
    chain      text COLLATE "C" NOT NULL
);

CREATE INDEX entry_expiry ON entry (workspace, expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX entry_recent ON entry (workspace, namespace, updated_at);
ALTER TABLE entry ADD PRIMARY KEY (workspace, namespace, key);

CREATE TABLE message (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    session   text COLLATE "C" NOT NULL,
    sender    text COLLATE "C" NOT NULL,
    recipient text COLLATE "C" NOT NULL,
    text      text COLLATE "C" NOT NULL,
    sent_at   bigint NOT NULL,
    seq       bigint NOT NULL,
    taken_at  bigint,
    taken_by  text COLLATE "C",
    reader    text COLLATE "C" NOT NULL,
    about     text COLLATE "C" NOT NULL,
    PRIMARY KEY (workspace, id)
);

CREATE INDEX message_waiting ON message (workspace, session, recipient, seq) WHERE taken_at IS NULL;

CREATE TABLE breaker (
    workspace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    state      text COLLATE "C" NOT NULL CHECK (state IN ('closed', 'open', 'half-open')),
    failures  bigint NOT NULL CHECK (failures >= 0),
    until     bigint NOT NULL,
    probe     text COLLATE "C" NOT NULL,
    why       text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);

-- The agents that processes have published, for those that did not import the team.
CREATE TABLE card (
    workspace text COLLATE "C" NOT NULL,
    name      text COLLATE "C" NOT NULL,
    data      text COLLATE "C" NOT NULL,
    at        bigint NOT NULL,
    PRIMARY KEY (workspace, name)
);

-- Not history: who says that it is there.
CREATE TABLE worker (
    workspace text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    home      text COLLATE "C" NOT NULL,
    count     bigint NOT NULL,
    hands     bigint NOT NULL,
    PRIMARY KEY (workspace, id)
);

-- What wakes workers. When a task becomes pending, there is a job in procrastinate's queue: one for everything that is due
-- now, because whoever is woken claims all it can, and one of its own for each task that is due later. Triggers see to it,
-- so it holds in the very transaction that changes the task, and costs nothing for tasks that never wait.

CREATE FUNCTION job_queue(workspace text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    RETURN left(encode(sha256(convert_to(workspace, 'UTF8')), 'hex'), 32);

CREATE FUNCTION job_place(workspace text, task text) RETURNS text LANGUAGE sql IMMUTABLE STRICT
    RETURN job_queue(workspace) || '/' || task;

CREATE FUNCTION job_add(queue text, place text, due timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM procrastinate_defer_jobs_v1(
        ARRAY[ROW(queue, 'remit.due', 0, NULL, place, '{}', due)::procrastinate_job_to_defer_v1]
    );
EXCEPTION WHEN unique_violation THEN
    NULL;  -- one has come back into the queue at this very moment
END;
$$;

-- What is due now. A worker that has just taken the job may have looked too early; then the notice of our commit wakes it.
CREATE FUNCTION job_now() RETURNS trigger LANGUAGE plpgsql SET search_path = remit AS $$
DECLARE
    place text := job_queue(NEW.workspace);  -- a variable has no collation, so the index can be used
BEGIN
    IF NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = place AND status = 'todo') THEN
        PERFORM job_add(place, place, NULL);
    END IF;
    RETURN NULL;
END;
$$;

CREATE FUNCTION job_forget() RETURNS trigger LANGUAGE plpgsql SET search_path = remit AS $$
DECLARE
    place text := job_place(OLD.workspace, OLD.id);
BEGIN
    PERFORM procrastinate_cancel_job_v1(id, false, true) FROM procrastinate_jobs
    WHERE queueing_lock = place AND status = 'todo';
    RETURN NULL;
END;
$$;

-- When it is due, by the server's clock: that much later than the event which says so, whose time is ours.
CREATE FUNCTION job_later() RETURNS trigger LANGUAGE plpgsql SET search_path = remit AS $$
DECLARE
    place text := job_place(NEW.workspace, NEW.id);
    since bigint;
BEGIN
    SELECT at FROM event WHERE workspace = NEW.workspace ORDER BY seq DESC LIMIT 1 INTO since;
    PERFORM procrastinate_cancel_job_v1(id, false, true) FROM procrastinate_jobs
    WHERE queueing_lock = place AND status = 'todo';
    PERFORM job_add(
        job_queue(NEW.workspace), place, clock_timestamp() + greatest(0, NEW.ready_at - since) * interval '1 microsecond'
    );
    RETURN NULL;
END;
$$;

CREATE TRIGGER task_begins_pending AFTER INSERT ON task
    FOR EACH ROW WHEN (NEW.state = 'pending' AND NEW.ready_at <= NEW.asked_at) EXECUTE FUNCTION job_now();
CREATE TRIGGER task_begins_later AFTER INSERT ON task
    FOR EACH ROW WHEN (NEW.state = 'pending' AND NEW.ready_at > NEW.asked_at) EXECUTE FUNCTION job_later();
CREATE TRIGGER task_becomes_pending AFTER UPDATE OF state ON task
    FOR EACH ROW WHEN (NEW.state = 'pending' AND NEW.ready_at = 0) EXECUTE FUNCTION job_now();
CREATE TRIGGER task_becomes_pending_later AFTER UPDATE OF state ON task
    FOR EACH ROW WHEN (NEW.state = 'pending' AND NEW.ready_at > 0) EXECUTE FUNCTION job_later();
CREATE TRIGGER task_stops_pending AFTER UPDATE OF state ON task
    FOR EACH ROW WHEN (OLD.state = 'pending' AND NEW.state <> 'pending' AND OLD.ready_at > 0)
    EXECUTE FUNCTION job_forget();
CREATE TRIGGER task_goes_pending AFTER DELETE ON task
    FOR EACH ROW WHEN (OLD.state = 'pending' AND OLD.ready_at > 0) EXECUTE FUNCTION job_forget();
