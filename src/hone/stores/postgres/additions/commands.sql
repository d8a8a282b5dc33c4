-- Commands that an owner queued are documents of the kind queued; what they are about lies in folders below. A ticket is put
-- in the transaction that stores one.
--   command  a step of an experiment or an import
-- It shares a slot with reviews, as tend does, and comes after copies and before tend. To older workers it is unknown: they
-- put the ticket back.
CREATE OR REPLACE FUNCTION hone_jobs.put_ticket(p_owner text, p_kind text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
DECLARE
    v_slots integer;
    v_lock text;
BEGIN
    IF p_kind <> 'review' THEN
        -- What takes long shares a slot with reviews, so that no owner gets more workers than slots.
        v_lock := CASE WHEN p_kind IN ('tend', 'command') THEN p_owner || '/review/0' ELSE p_owner || '/' || p_kind END;
        PERFORM put_into(p_owner, p_kind, v_lock,
            CASE p_kind WHEN 'wake' THEN 30 WHEN 'deliver' THEN 10 WHEN 'command' THEN 5 ELSE 0 END);
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

CREATE TRIGGER queued AFTER INSERT ON hone.documents FOR EACH ROW
    WHEN (NEW.kind = 'queued' AND NEW.name NOT LIKE '%/%') EXECUTE FUNCTION hone_jobs.on_work('command');

-- A conversation that nobody looks back over, such as an imported one, needs vectors, too. Its owner is woken in ten minutes,
-- unless that happens earlier anyway.
CREATE FUNCTION hone_jobs.on_conversation() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone_jobs, pg_temp AS $$
BEGIN
    PERFORM set_alarm(NEW.owner, now_us() + 600000000);
    RETURN NULL;
END $$;
CREATE TRIGGER begun AFTER INSERT ON hone.sessions FOR EACH ROW WHEN (NEW.origin = 'user')
    EXECUTE FUNCTION hone_jobs.on_conversation();
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        REVOKE EXECUTE ON FUNCTION hone_jobs.on_conversation() FROM PUBLIC;
    END IF;
END $$;
