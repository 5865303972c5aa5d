-- The labels of the tasks that began in a chapter: who asked for them, who started their runs, and their tags. A list of
-- tasks by one of these skips the chapters without it. Chapters that were written before may have any.
ALTER TABLE chapter ADD COLUMN labels TEXT NOT NULL DEFAULT '*';
