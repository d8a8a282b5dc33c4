-- What was spent in each hour by each origin: a span is added up from its hours, and from the calls of the hours that
-- it begins or ends within. `low` and `high` are the numbers of the first and the last call. Triggers keep it right.
CREATE INDEX spending_at ON spending (at, origin);
CREATE TABLE spending_hours (
    hour INTEGER NOT NULL,
    origin TEXT NOT NULL,
    calls INTEGER NOT NULL,
    unpriced INTEGER NOT NULL,
    input INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost REAL NOT NULL,
    low INTEGER NOT NULL,
    high INTEGER NOT NULL,
    PRIMARY KEY (hour, origin)
) STRICT, WITHOUT ROWID;
CREATE VIEW spending_by_hour AS
SELECT at / 3600000000 - (at % 3600000000 < 0) AS hour, origin, count(*) AS calls, count(*) - count(cost) AS unpriced,
    sum(input) AS input, sum(cached) AS cached, sum(written) AS written, sum(output) AS output, total(cost) AS cost,
    min(id) AS low, max(id) AS high
FROM spending GROUP BY 1, 2;
INSERT INTO spending_hours SELECT * FROM spending_by_hour;
CREATE TRIGGER spending_added AFTER INSERT ON spending BEGIN
    INSERT INTO spending_hours
    SELECT new.at / 3600000000 - (new.at % 3600000000 < 0), new.origin, 0, 0, 0, 0, 0, 0, 0.0, new.id, new.id
    WHERE NOT EXISTS (
        SELECT 1 FROM spending_hours
        WHERE hour = new.at / 3600000000 - (new.at % 3600000000 < 0) AND origin = new.origin
    );
    UPDATE spending_hours SET calls = calls + 1, unpriced = unpriced + (new.cost IS NULL), input = input + new.input,
        cached = cached + new.cached, written = written + new.written, output = output + new.output,
        cost = cost + coalesce(new.cost, 0.0), low = min(low, new.id), high = max(high, new.id)
    WHERE hour = new.at / 3600000000 - (new.at % 3600000000 < 0) AND origin = new.origin;
END;

-- Where a history that a client sends belongs: after each turn the digest of all that was said so far. A cache that is
-- filled as conversations are looked at or continued. The row with 0 messages says up to which head a session is done.
CREATE TABLE histories (
    session TEXT NOT NULL,
    messages INTEGER NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (session, messages)
) STRICT, WITHOUT ROWID;
CREATE INDEX histories_digest ON histories (digest, session, messages);
CREATE TRIGGER sessions_deleted AFTER DELETE ON sessions BEGIN
    DELETE FROM histories WHERE session = old.id;
END;
