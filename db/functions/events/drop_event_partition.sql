-- drop_event_partition(partition, keep, relayed) -> what became of it
--
-- History leaves by whole partitions. One goes only when all of it is old enough, the deliveries that stay have their
-- checkpoints, and everybody who listens could have heard it.
--
-- relayed      whether there is a relay that must have passed it; false where nobody listens at all
-- Verdicts     dropped
--              young             it still holds something that is kept
--              unchecked         checkpoint_deliveries has not come to its end
--              unrelayed         the audit relay has not passed it
--              busy              somebody reads or writes events for longer than this waits: try again. Whoever comes
--                                after a waiting drop waits with it, so it does not wait for long
-- Locks        events, ACCESS EXCLUSIVE, for the moment that it takes
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
