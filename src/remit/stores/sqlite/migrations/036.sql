-- When a process sent its latest heartbeat, by its own clock, in microseconds since 1970.
ALTER TABLE worker ADD COLUMN seen_at INTEGER NOT NULL DEFAULT 0;
