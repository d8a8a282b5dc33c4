-- Users of a team's Hone. A user is an owner of rows: `name` is what every row of theirs carries as its owner. The rows here are the
-- operator's and hold nothing that users say. The application's role has no rights on them; it asks through the functions below,
-- which answer one question each and run as the owner of the tables.
CREATE TABLE users (
    name word PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9._-]{0,31}$' AND name NOT IN ('local', 'team')),
    created timestamptz NOT NULL DEFAULT now(),
    disabled timestamptz,
    -- Limits; NULL: as the settings of the server say.
    requests_per_minute integer CHECK (requests_per_minute > 0),
    cost_per_day double precision CHECK (cost_per_day >= 0),
    storage_mb integer CHECK (storage_mb >= 0),
    reviews integer CHECK (reviews >= 0),
    turns integer CHECK (turns > 0)
);

-- `digest` is the SHA-256 of a key of 256 random bits; the key is kept nowhere.
CREATE TABLE user_keys (
    digest word PRIMARY KEY,
    user_name word NOT NULL REFERENCES users (name) ON DELETE CASCADE,
    name word NOT NULL,
    kind word NOT NULL CHECK (kind IN ('person', 'program')),
    created timestamptz NOT NULL DEFAULT now(),
    expires timestamptz,
    revoked timestamptz,
    used timestamptz
);
CREATE UNIQUE INDEX user_keys_name ON user_keys (user_name, name) WHERE revoked IS NULL;

-- What happened at the door. A row stands for all that is alike within a minute: `count` times, last at `last`. `minute` is NULL
-- for what an administrator did, of which each time counts.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL DEFAULT now(),
    last timestamptz NOT NULL DEFAULT now(),
    minute bigint,
    user_name word NOT NULL DEFAULT '',
    event word NOT NULL,
    detail word NOT NULL DEFAULT '',
    address word NOT NULL DEFAULT '',
    count bigint NOT NULL DEFAULT 1
);
CREATE UNIQUE INDEX audit_alike ON audit (minute, event, user_name, address, detail);
CREATE INDEX audit_at ON audit (at);

-- How many requests a user may still make now, and how many wrong keys came from an address. After a crash of the database they
-- begin anew, so that counting costs no wait for the disk.
CREATE UNLOGGED TABLE user_rates (
    user_name word PRIMARY KEY,
    tokens double precision NOT NULL,
    at timestamptz NOT NULL
);
CREATE UNLOGGED TABLE user_requests (
    user_name word NOT NULL,
    day date NOT NULL,
    requests bigint NOT NULL,
    refused bigint NOT NULL,
    PRIMARY KEY (user_name, day)
);
CREATE UNLOGGED TABLE guesses (
    address word PRIMARY KEY,
    minute bigint NOT NULL,
    count integer NOT NULL
);

CREATE FUNCTION this_minute() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT floor(extract(epoch FROM now()) / 60)::bigint
$$;

-- Count a request. Return 0 if it may be made, else the seconds after which the next one may. A bucket fills up evenly with the
-- tokens of each minute. It holds ten, or a tenth of a minute: so many requests may come at once. NULL: no limit.
CREATE FUNCTION charge_request(p_user text, p_limit integer) RETURNS double precision
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_most double precision := least(p_limit, greatest(10, p_limit / 10.0));
    v_tokens double precision;
    v_wait double precision := 0;
BEGIN
    IF p_limit IS NOT NULL THEN
        INSERT INTO user_rates AS r (user_name, tokens, at) VALUES (p_user, v_most, clock_timestamp())
        ON CONFLICT (user_name) DO UPDATE SET at = clock_timestamp(), tokens = least(
            v_most, r.tokens + p_limit / 60.0 * greatest(0, extract(epoch FROM clock_timestamp() - r.at))
        )
        RETURNING tokens INTO v_tokens;
        IF v_tokens >= 1 THEN
            UPDATE user_rates SET tokens = tokens - 1 WHERE user_name = p_user;
        ELSE
            v_wait := (1 - v_tokens) * 60.0 / p_limit;
        END IF;
    END IF;
    INSERT INTO user_requests AS r (user_name, day, requests, refused)
    VALUES (p_user, (now() AT TIME ZONE 'UTC')::date, 1, (v_wait > 0)::integer)
    ON CONFLICT (user_name, day) DO UPDATE SET requests = r.requests + 1, refused = r.refused + excluded.refused;
    RETURN v_wait;
END $$;

-- Who has this key? `refusal` is empty for one that is valid; then the request has been counted. `p_limit` is the rate of users
-- without their own.
CREATE FUNCTION enter_by_key(
    p_digest text, p_limit integer,
    OUT user_name text, OUT key_name text, OUT kind text, OUT refusal text, OUT wait double precision
) LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_key user_keys;
    v_user users;
BEGIN
    SELECT * INTO v_key FROM user_keys AS k WHERE k.digest = p_digest;
    SELECT * INTO v_user FROM users AS u WHERE u.name = v_key.user_name;
    user_name := coalesce(v_user.name, '');
    key_name := coalesce(v_key.name, '');
    kind := coalesce(v_key.kind, '');
    wait := 0;
    refusal := CASE
        WHEN v_key.digest IS NULL THEN 'wrong'
        WHEN v_user.disabled IS NOT NULL THEN 'disabled'
        WHEN v_key.revoked IS NOT NULL THEN 'revoked'
        WHEN v_key.expires <= now() THEN 'expired'
        ELSE ''
    END;
    IF refusal <> '' THEN
        RETURN;
    END IF;
    IF v_key.used IS NULL OR v_key.used < now() - interval '1 minute' THEN
        UPDATE user_keys AS k SET used = now() WHERE k.digest = p_digest;
    END IF;
    wait := charge_request(v_user.name, coalesce(v_user.requests_per_minute, p_limit));
END $$;

-- Why is a user not let in whom a sealed cookie, a link or a trusted proxy names? Empty: no reason. `p_digest` is the key that the
-- cookie came by, if any.
CREATE FUNCTION judge_user(p_user text, p_digest text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_user users;
    v_key user_keys;
BEGIN
    SELECT * INTO v_user FROM users AS u WHERE u.name = p_user;
    SELECT * INTO v_key FROM user_keys AS k WHERE k.digest = p_digest AND k.user_name = p_user;
    RETURN CASE
        WHEN v_user.name IS NULL THEN 'wrong'
        WHEN v_user.disabled IS NOT NULL THEN 'disabled'
        WHEN p_digest <> '' AND v_key.digest IS NULL THEN 'wrong'
        WHEN v_key.revoked IS NOT NULL THEN 'revoked'
        WHEN v_key.expires <= now() THEN 'expired'
        ELSE ''
    END;
END $$;

-- Let such a user in, and count the request.
CREATE FUNCTION enter_as(p_user text, p_digest text, p_limit integer, OUT refusal text, OUT wait double precision)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
BEGIN
    refusal := judge_user(p_user, p_digest);
    wait := 0;
    IF refusal = '' THEN
        wait := charge_request(p_user, coalesce((SELECT requests_per_minute FROM users WHERE name = p_user), p_limit));
    END IF;
END $$;

CREATE FUNCTION find_limits(
    p_user text, OUT cost_per_day double precision, OUT storage_mb integer, OUT reviews integer, OUT turns integer
) LANGUAGE sql STABLE SECURITY DEFINER SET search_path = hone, pg_temp AS $$
    SELECT u.cost_per_day, u.storage_mb, u.reviews, u.turns FROM users AS u WHERE u.name = p_user
$$;

-- Write down what happened at the door. If there are very many kinds of it in a minute, addresses are no longer told apart.
CREATE FUNCTION note_event(p_user text, p_event text, p_detail text, p_address text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_many boolean := (SELECT count(*) >= 500 FROM (SELECT 1 FROM audit WHERE minute = this_minute() LIMIT 500) AS recent);
BEGIN
    INSERT INTO audit AS a (minute, user_name, event, detail, address) VALUES (
        this_minute(), left(p_user, 64), left(p_event, 64), CASE WHEN v_many THEN '' ELSE left(p_detail, 200) END,
        CASE WHEN v_many THEN '(many)' ELSE left(p_address, 64) END
    )
    ON CONFLICT (minute, event, user_name, address, detail) DO UPDATE SET count = a.count + 1, last = now();
END $$;

-- Somebody was not let in. Return how many that were within this minute, from this address.
CREATE FUNCTION note_refusal(p_user text, p_event text, p_detail text, p_address text) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_count integer;
BEGIN
    INSERT INTO guesses AS g (address, minute, count) VALUES (left(p_address, 64), this_minute(), 1)
    ON CONFLICT (address) DO UPDATE SET minute = excluded.minute,
        count = CASE WHEN g.minute = excluded.minute THEN g.count + 1 ELSE 1 END
    RETURNING count INTO v_count;
    PERFORM note_event(p_user, p_event, p_detail, p_address);
    RETURN v_count;
END $$;

-- Forget what is older than so many days. The application cannot make it forget the last month.
CREATE FUNCTION prune_audit(p_days integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = hone, pg_temp AS $$
DECLARE
    v_count bigint;
BEGIN
    DELETE FROM guesses WHERE minute < this_minute() - 5;
    DELETE FROM user_requests WHERE day < (now() AT TIME ZONE 'UTC')::date - 400;
    DELETE FROM audit WHERE last < now() - make_interval(days => greatest(p_days, 30));
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

-- One channel for all owners, so that a server listens on one connection however many users it serves. Servers of an older Hone
-- listen on the first.
CREATE OR REPLACE FUNCTION wake_servers(p_owner text, p_server text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('hone_' || md5(p_owner), p_server), pg_notify('hone_wake', md5(p_owner) || ' ' || p_server)
$$;

REVOKE EXECUTE ON FUNCTION charge_request(text, integer), enter_by_key(text, integer), judge_user(text, text), enter_as(text, text, integer),
    find_limits(text),
    note_event(text, text, text, text), note_refusal(text, text, text, text), prune_audit(integer) FROM PUBLIC;
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        REVOKE ALL ON users, user_keys, audit, user_rates, user_requests, guesses FROM hone_app;
        GRANT EXECUTE ON FUNCTION enter_by_key(text, integer), judge_user(text, text), enter_as(text, text, integer), find_limits(text),
            note_event(text, text, text, text), note_refusal(text, text, text, text), prune_audit(integer) TO hone_app;
    END IF;
END $$;
