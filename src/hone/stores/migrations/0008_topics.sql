-- What counts towards the next review of each topic of a tree, whatever topics there are; one without a row has counted
-- nothing. Every column stands twice, as everywhere.
CREATE TABLE counts (
    tree TEXT NOT NULL,
    topic TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (tree, topic)
) STRICT, WITHOUT ROWID;
INSERT INTO counts (tree, topic, count)
SELECT tree, 'memory', turns FROM counters WHERE turns <> 0
UNION ALL SELECT tree, 'skills', iterations FROM counters WHERE iterations <> 0;
CREATE INDEX counts_whole ON counts (count);
DROP TABLE counters;
