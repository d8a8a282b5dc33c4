-- Results of tools that are foreign for one reason only: the owner has not trusted the folder they come from. `key` is
-- the digest of the call's id and the result's text; `folder` is empty where the words are Hone's own.
CREATE TABLE withheld (
    key TEXT NOT NULL PRIMARY KEY,
    folder TEXT NOT NULL
) STRICT, WITHOUT ROWID;
