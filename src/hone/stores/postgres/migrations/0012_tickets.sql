-- Tickets: jobs of the engine that say that an owner has work of a kind. They hold nothing but the owner and the kind. What is
-- to be done stands in Hone's own rows, and what was done is decided there. So a ticket too many does no harm.
--   wake     something became due: turn looks into reviews, see what rests          (soon over, and the others depend on it)
--   review   one review of the owner's queue
--   deliver  copies for the memory backend
--   tend     the curator, vectors, and what else features do when nobody waits
-- An owner has a few slots for reviews, fewer than there are workers. A slot has one ticket, and the next one is put at the
-- end of the line: everybody's turn comes, however much one owner has queued.
CREATE TABLE hone_jobs.alarms (
    owner text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL
);
COMMENT ON TABLE hone_jobs.alarms IS 'When an owner needs a ticket of the kind wake: microseconds since 1970.';
CREATE INDEX alarms_at ON hone_jobs.alarms (at);

CREATE TABLE hone_jobs.crew (
    worker bigint PRIMARY KEY REFERENCES hone_jobs.procrastinate_workers (id) ON DELETE CASCADE,
    name text NOT NULL,
    concurrency integer NOT NULL,
    since timestamptz NOT NULL DEFAULT now()
);

-- With many waiting, the engine's own indexes let a fetch look at each of them.
CREATE INDEX waiting_in_lock ON hone_jobs.procrastinate_jobs (lock, priority, id);
ALTER TABLE hone_jobs.procrastinate_jobs SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000);

-- When a review that failed may be tried again. 0: at once.
ALTER TABLE jobs ADD COLUMN due bigint NOT NULL DEFAULT 0;

CREATE FUNCTION hone_jobs.now_us() RETURNS bigint LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- The slots of an owner: half of what all workers do at once.
CREATE FUNCTION hone_jobs.count_slots() RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT greatest(1, least(8, coalesce(sum(c.concurrency), 0)::integer / 2))
    FROM hone_jobs.crew AS c JOIN hone_jobs.procrastinate_workers AS w ON w.id = c.worker
    WHERE w.last_heartbeat > clock_timestamp() - interval '30 seconds'
$$;

CREATE FUNCTION hone_jobs.call_workers() RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('procrastinate_any_queue_v1', '{"type": "job_inserted", "job_id": 0}')
$$;

-- Put a ticket into a lock. If one waits there already, hold it until this transaction ends: a worker that takes it then
-- sees what we write now.
CREATE FUNCTION hone_jobs.put_into(p_owner text, p_kind text, p_lock text, p_priority integer) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    PERFORM 1 FROM procrastinate_jobs WHERE lock = p_lock AND priority = p_priority AND status = 'todo' LIMIT 1 FOR SHARE;
    IF FOUND THEN
        PERFORM call_workers();
        RETURN;
    END IF;
    PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
        'hone', 'hone', p_priority, p_lock, NULL, jsonb_build_object('owner', p_owner, 'kind', p_kind), NULL
    )::procrastinate_job_to_defer_v1]);
END $$;

CREATE FUNCTION hone_jobs.put_ticket(p_owner text, p_kind text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
DECLARE
    v_slots integer;
    v_lock text;
BEGIN
    IF p_kind <> 'review' THEN
        -- What takes long shares a slot with reviews, so that no owner gets more workers than slots.
        v_lock := CASE p_kind WHEN 'tend' THEN p_owner || '/review/0' ELSE p_owner || '/' || p_kind END;
        PERFORM put_into(p_owner, p_kind, v_lock, CASE p_kind WHEN 'wake' THEN 30 WHEN 'deliver' THEN 10 ELSE 0 END);
        RETURN;
    END IF;
    v_slots := count_slots();
    FOR v_slot IN 0 .. v_slots - 1 LOOP
        v_lock := p_owner || '/review/' || v_slot;
        IF NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = v_lock AND (status = 'doing' OR priority = 20)) THEN
            PERFORM put_into(p_owner, p_kind, v_lock, 20);
            RETURN;
        END IF;
    END LOOP;
    -- All slots are at work or wait: let the next one that is free look again.
    FOR v_slot IN 0 .. v_slots - 1 LOOP
        v_lock := p_owner || '/review/' || v_slot;
        IF NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = v_lock AND priority = 20 AND status = 'todo') THEN
            EXIT;
        END IF;
    END LOOP;
    PERFORM put_into(p_owner, p_kind, v_lock, 20);
END $$;

-- Wake the owner at a time, unless that happens earlier anyway. Who sets an alarm later is alone with the owner (rearm), so
-- that nobody relies on one that is gone.
CREATE FUNCTION hone_jobs.set_alarm(p_owner text, p_at bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM alarms WHERE owner = p_owner AND at <= p_at) THEN
        RETURN;
    END IF;
    INSERT INTO alarms AS known (owner, at) VALUES (p_owner, p_at)
    ON CONFLICT (owner) DO UPDATE SET at = least(known.at, excluded.at);
END $$;

CREATE FUNCTION hone_jobs.on_work() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    PERFORM put_ticket(NEW.owner, TG_ARGV[0]);
    RETURN NULL;
END $$;
CREATE FUNCTION hone_jobs.on_due() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    PERFORM set_alarm(NEW.owner, NEW.due);
    RETURN NULL;
END $$;

CREATE TRIGGER queued AFTER INSERT ON jobs FOR EACH ROW WHEN (NEW.state = 'queued')
    EXECUTE FUNCTION hone_jobs.on_work('review');
CREATE TRIGGER queued_again AFTER UPDATE OF state ON jobs FOR EACH ROW WHEN (NEW.state = 'queued' AND OLD.state <> 'queued')
    EXECUTE FUNCTION hone_jobs.on_work('review');
CREATE TRIGGER rests AFTER UPDATE OF due ON jobs FOR EACH ROW WHEN (NEW.state = 'queued' AND NEW.due <> OLD.due)
    EXECUTE FUNCTION hone_jobs.on_due();
CREATE TRIGGER outgoing AFTER INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION hone_jobs.on_work('deliver');
CREATE TRIGGER looked_for AFTER INSERT ON looks FOR EACH ROW EXECUTE FUNCTION hone_jobs.on_due();
-- A look that is only put off keeps its alarm, which finds out.
CREATE TRIGGER looked_for_again AFTER UPDATE ON looks FOR EACH ROW
    WHEN (NEW.due < OLD.due OR NEW.turns <> OLD.turns OR NEW.cue <> OLD.cue)
    EXECUTE FUNCTION hone_jobs.on_due();

-- For an owner who was woken, and with whom the caller is alone: give a ticket to what can be done now, and set the alarm for
-- what comes later. `p_next` is when the next look is due.
CREATE FUNCTION hone_jobs.rearm(p_next bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
DECLARE
    v_owner text := current_setting('hone.owner');
    v_now bigint := now_us();
    v_next bigint;
BEGIN
    IF EXISTS (SELECT 1 FROM hone.jobs WHERE owner = v_owner AND state = 'queued' AND due <= v_now) THEN
        PERFORM put_ticket(v_owner, 'review');
    END IF;
    IF EXISTS (SELECT 1 FROM hone.outbox WHERE owner = v_owner AND tries > 0 AND NOT refused) THEN
        PERFORM put_ticket(v_owner, 'deliver');
    END IF;
    v_next := least(p_next, (SELECT min(due) FROM hone.jobs WHERE owner = v_owner AND state = 'queued' AND due > v_now));
    IF v_next IS NULL THEN
        DELETE FROM alarms WHERE owner = v_owner;
    ELSE
        -- Not at once: machines do not quite agree about the time.
        INSERT INTO alarms (owner, at) VALUES (v_owner, greatest(v_next, v_now + 1000000))
        ON CONFLICT (owner) DO UPDATE SET at = excluded.at;
    END IF;
END $$;

-- Say that there is more to do, now or in so many microseconds.
CREATE FUNCTION hone_jobs.ask(p_kind text, p_later bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    IF p_later > 0 THEN
        PERFORM set_alarm(current_setting('hone.owner'), now_us() + p_later);
    ELSE
        PERFORM put_ticket(current_setting('hone.owner'), p_kind);
    END IF;
END $$;

-- The engine tells workers of new jobs, not of those that can begin because a lock became free, or that were put back.
CREATE FUNCTION hone_jobs.on_free() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    IF EXISTS (SELECT 1 FROM procrastinate_jobs WHERE lock = OLD.lock AND status = 'todo') THEN
        PERFORM call_workers();
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER lock_freed AFTER DELETE ON hone_jobs.procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing') EXECUTE FUNCTION hone_jobs.on_free();
CREATE TRIGGER put_back AFTER UPDATE OF status ON hone_jobs.procrastinate_jobs FOR EACH ROW
    WHEN (OLD.status = 'doing') EXECUTE FUNCTION hone_jobs.on_free();

-- What each worker does every moment; one at a time is enough. A worker whose heart stopped AND whose claim is free is gone:
-- its claim is a session lock, so a worker that is only stopped keeps it, and its tickets.
CREATE FUNCTION hone_jobs.sweep(p_stale double precision, OUT reaped integer, OUT woken integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
DECLARE
    v_owner text;
BEGIN
    reaped := 0;
    woken := 0;
    IF NOT pg_try_advisory_xact_lock(1752067685, 0) THEN
        RETURN;
    END IF;
    WITH gone AS (
        DELETE FROM procrastinate_workers AS w
        WHERE w.last_heartbeat < clock_timestamp() - make_interval(secs => p_stale) AND NOT EXISTS (
            SELECT 1 FROM pg_locks AS l WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
                AND l.classid = 1752067685::oid AND l.objid = w.id::oid
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
        ) RETURNING id
    )
    UPDATE procrastinate_jobs AS j SET status = 'todo', worker_id = NULL, attempts = attempts + 1
    WHERE j.status = 'doing' AND (j.worker_id IS NULL OR j.worker_id IN (SELECT id FROM gone));
    GET DIAGNOSTICS reaped = ROW_COUNT;
    FOR v_owner IN
        UPDATE alarms SET at = now_us() + 30000000
        WHERE owner IN (SELECT owner FROM alarms WHERE at <= now_us() ORDER BY at LIMIT 200 FOR UPDATE SKIP LOCKED)
        RETURNING owner
    LOOP
        PERFORM put_ticket(v_owner, 'wake');
        woken := woken + 1;
    END LOOP;
    IF (SELECT n_mod_since_analyze > 500 + n_live_tup / 2 FROM pg_stat_user_tables WHERE relid = 'procrastinate_jobs'::regclass)
    THEN
        ANALYZE procrastinate_jobs;
    END IF;
END $$;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA hone_jobs FROM PUBLIC;
        GRANT USAGE ON SCHEMA hone_jobs TO hone_app;
        GRANT EXECUTE ON FUNCTION hone_jobs.rearm(bigint), hone_jobs.ask(text, bigint) TO hone_app;
    END IF;
END $$;
