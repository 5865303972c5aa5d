-- When a process sent its latest heartbeat, by its own clock, in microseconds since 1970.
ALTER TABLE worker ADD COLUMN seen_at bigint NOT NULL DEFAULT 0;
