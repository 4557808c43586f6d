-- As after a restore: the planner knows nothing of any table, until somebody analyses it.
DELETE FROM pg_statistic
WHERE starelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace);

UPDATE pg_class
SET reltuples = -1, relpages = 0, relallvisible = 0
WHERE relnamespace = 'public'::regnamespace
  AND relkind IN ('r', 'p', 'i', 'I');
