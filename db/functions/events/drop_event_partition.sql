-- drop_event_partition(partition, keep, relayed) -> the verdict
--
-- Old events are deleted by whole partitions. One is dropped only when all of it is old enough, the deliveries that
-- stay have their checkpoints, and the audit relay has passed it.
--
-- relayed      whether there is a relay that must have passed it; false where nothing consumes the stream
-- Verdicts     dropped
--              young             it still holds something that is kept
--              unchecked         checkpoint_deliveries has not finished
--              unrelayed         the audit relay has not passed it
--              busy              other transactions use events for longer than this waits: try again. Those that come
--                                after a waiting drop wait with it, so the wait is short
-- Locks        events, ACCESS EXCLUSIVE, for a moment
CREATE OR REPLACE FUNCTION drop_event_partition(p_partition text, p_keep interval, p_relayed boolean)
RETURNS text
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET lock_timeout = '200ms'
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM expired_event_partitions(p_keep) AS p WHERE p.partition = p_partition) THEN
        RETURN 'young';
    ELSIF NOT EXISTS (
        SELECT 1
        FROM walk_cursors w
        WHERE w.walk = 'checkpoints of ' || p_partition
          AND w.done_at IS NOT NULL
    ) THEN
        RETURN 'unchecked';
    ELSIF p_relayed AND NOT relay_passed(p_partition) THEN
        RETURN 'unrelayed';
    END IF;
    EXECUTE format('DROP TABLE public.%I', p_partition);
    DELETE FROM walk_cursors w WHERE w.walk = 'checkpoints of ' || p_partition;
    RETURN 'dropped';
EXCEPTION WHEN lock_not_available THEN
    RETURN 'busy';
END $$;
