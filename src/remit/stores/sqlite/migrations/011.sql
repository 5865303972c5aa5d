-- The last version of what was removed from an address: no version is used again.
CREATE TABLE retired (
    workspace TEXT NOT NULL,
    namespace TEXT NOT NULL,
    key       TEXT NOT NULL,
    version   INTEGER NOT NULL CHECK (version > 0),
    PRIMARY KEY (workspace, namespace, key)
) STRICT, WITHOUT ROWID;

-- Whether the sender of a message had taken in something from outside.
ALTER TABLE message ADD COLUMN trust TEXT NOT NULL DEFAULT 'trusted' CHECK (trust IN ('trusted', 'untrusted'));
