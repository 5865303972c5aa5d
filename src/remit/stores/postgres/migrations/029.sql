-- The person who started the run of a call, for the limits of a person.
ALTER TABLE hold ADD COLUMN person text COLLATE "C" NOT NULL DEFAULT '';
