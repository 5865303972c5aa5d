-- The last version of what was removed from an address: no version is used again.
CREATE TABLE retired (
    workspace text COLLATE "C" NOT NULL,
    namespace text COLLATE "C" NOT NULL,
    key       text COLLATE "C" NOT NULL,
    version   bigint NOT NULL CHECK (version > 0),
    PRIMARY KEY (workspace, namespace, key)
);

-- Whether the sender of a message had taken in something from outside.
ALTER TABLE message ADD COLUMN trust text COLLATE "C" NOT NULL DEFAULT 'trusted' CHECK (trust IN ('trusted', 'untrusted'));
