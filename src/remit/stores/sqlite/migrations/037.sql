-- Hooks that are sent one task of A2A as it is, each time that it changes.
ALTER TABLE hook ADD COLUMN task TEXT NOT NULL DEFAULT '';
