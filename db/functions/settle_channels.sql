-- settle_channels(workspace_id, channel_ids, counts, more, now)
--
-- Before a claim takes what it has chosen: writes for each channel it looked at when it is next worth a look.
-- counts and more go with channel_ids: how many are being taken, and whether more was seen waiting.
--
-- own gates closed     when they open
-- full, has work       never: the commit that frees a place makes it due. Declared only while the channel's 'ended'
--                      counter is held; one that is being counted right now is looked at again at once
-- work left            when the channel's next slot is; one that was served goes behind those that were not
-- nothing left         when the next sleeper is due, never if there is none. Declared only under FOR UPDATE on the
--                      channel; one that cannot be locked so is being fed, and is looked at again at once
--
-- Locks     channels FOR UPDATE SKIP LOCKED, channel_counters SKIP LOCKED: only of channels that gave all they had,
--           or have no place left; channel_due SKIP LOCKED. It waits for nobody
CREATE OR REPLACE FUNCTION settle_channels(
    p_workspace_id uuid,
    p_channel_ids uuid[],
    p_counts int[],
    p_more boolean[],
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
AS $$
DECLARE
    _closable uuid[];
    _full uuid[];
BEGIN
    _closable := ARRAY(
        SELECT c.channel_id
        FROM unnest(p_channel_ids, p_more) AS p (channel_id, more)
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = p.channel_id
        WHERE NOT p.more
        ORDER BY c.channel_id
        FOR UPDATE OF c SKIP LOCKED
    );
    _full := ARRAY(
        SELECT ended.channel_id
        FROM unnest(p_channel_ids, p_counts) AS p (channel_id, taken)
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = p.channel_id
        JOIN channel_counters started
          ON started.workspace_id = p_workspace_id
         AND started.channel_id = p.channel_id
         AND started.side = 'started'
        JOIN channel_counters ended
          ON ended.workspace_id = p_workspace_id
         AND ended.channel_id = p.channel_id
         AND ended.side = 'ended'
        WHERE started.total + p.taken - ended.total >= c.max_parallel
        ORDER BY ended.channel_id
        FOR UPDATE OF ended SKIP LOCKED
    );

    -- A new statement, so it sees whatever was enqueued before the locks were had.
    UPDATE channel_due d
    SET next_due_at = s.next_due_at,
        waits_for_place = s.waits_for_place
    FROM (
        SELECT c.channel_id,
               is_full AND has_work AND opens_at <= p_now AS waits_for_place,
               CASE
                   WHEN opens_at > p_now THEN opens_at
                   WHEN is_full AND has_work THEN 'infinity'
                   WHEN has_work THEN greatest(c.next_allowed_at,
                                               CASE WHEN p.taken > 0 THEN p_now ELSE was.next_due_at END)
                   WHEN NOT is_closable THEN p_now + interval '5 milliseconds'
                   WHEN sleeper.due IS NULL THEN 'infinity'
                   ELSE greatest(sleeper.due, c.next_allowed_at)
               END AS next_due_at
        FROM unnest(p_channel_ids, p_counts, p_more) AS p (channel_id, taken, more)
        JOIN channels c
          ON c.workspace_id = p_workspace_id
         AND c.channel_id = p.channel_id
        JOIN channel_due was
          ON was.workspace_id = p_workspace_id
         AND was.channel_id = p.channel_id
        CROSS JOIN LATERAL channel_opens_at(c, p_now) AS opens_at
        CROSS JOIN LATERAL (
            SELECT p.channel_id IN (SELECT unnest(_full)), p.channel_id IN (SELECT unnest(_closable))
        ) AS l (is_full, is_closable)
        CROSS JOIN LATERAL (
            SELECT p.more OR EXISTS (
                SELECT 1
                FROM delivery_queue q
                WHERE q.workspace_id = p_workspace_id
                  AND q.channel_id = p.channel_id
                  AND NOT q.asleep
                  AND q.claim_token IS NULL
                OFFSET p.taken
            )
        ) AS w (has_work)
        LEFT JOIN LATERAL (
            SELECT q.sort_at AS due
            FROM delivery_queue q
            WHERE NOT has_work
              AND q.workspace_id = p_workspace_id
              AND q.channel_id = p.channel_id
              AND q.asleep
              AND q.claim_token IS NULL
            ORDER BY q.sort_at
            LIMIT 1
        ) AS sleeper ON true
        FOR UPDATE OF was SKIP LOCKED -- one that somebody else is making due stays due
    ) AS s
    WHERE d.workspace_id = p_workspace_id
      AND d.channel_id = s.channel_id
      AND (d.next_due_at, d.waits_for_place) IS DISTINCT FROM (s.next_due_at, s.waits_for_place);
END $$;
