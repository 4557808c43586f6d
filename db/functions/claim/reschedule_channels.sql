-- reschedule_channels(workspaces, channels, counts, more, tight, now)
--
-- Before a claim takes what it has chosen: writes for each channel it has read when the next claim should read it.
-- counts, more and tight go with channels, row by row: how many are being taken, whether more was seen waiting, and whether no
-- place seemed to be left.
--
-- own gates closed     when they open, also if it is full: until then its sends have ended as a rule, so that no commit
--                      has to write to channel_due
-- full, has work       never: the commit that frees a place makes it due. Declared only while the channel's 'ended'
--                      counter is held; one that is being counted right now stays due at once
-- work left            when the channel's next slot is. Channels that were served go behind those that were not, and
--                      keep their own order: among equals the index would prefer the same ones every time
-- nothing left         when the next sleeper is due, never if there is none. Declared only under FOR UPDATE on its
--                      channel_due; a row that cannot be locked so is getting deliveries, and stays due at once
--
-- What it gave, four times that if it has more, is what the next claim expects of it: see ready_channels.
--
-- Five times a second the low_water of a channel rises to the first row that waits in it. That too happens only under
-- FOR UPDATE on its channel_due, by a statement that starts after the lock: a transaction that adds a delivery there
-- holds it FOR KEY SHARE and has read the low_water of that moment.
--
-- Locks     channel_due FOR UPDATE SKIP LOCKED, channel_counters SKIP LOCKED: only of channels that gave all they had,
--           whose low_water is to rise, or that have no place left; channel_due FOR NO KEY UPDATE SKIP LOCKED. No wait
CREATE OR REPLACE FUNCTION reschedule_channels(
    p_workspaces uuid[],
    p_channels uuid[],
    p_counts int[],
    p_more boolean[],
    p_tight boolean[],
    p_now timestamptz
)
RETURNS void
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
    _most CONSTANT int := 32; -- so that channels with a backlog still take turns
    _count CONSTANT int := cardinality(p_channels);
    _closable boolean[];
    _full boolean[] := array_fill(false, ARRAY[_count]);
BEGIN
    SELECT array_agg(d.held IS TRUE ORDER BY p.nth)
    INTO _closable
    FROM unnest(p_workspaces, p_channels, p_more) WITH ORDINALITY AS p (workspace_id, channel_id, more, nth)
    LEFT JOIN LATERAL (
        SELECT true AS held
        FROM channel_due d
        WHERE d.workspace_id = p.workspace_id
          AND d.channel_id = p.channel_id
          AND (NOT p.more OR d.swept_at < p_now - interval '200 milliseconds')
        FOR UPDATE SKIP LOCKED
    ) AS d ON true;
    IF true = ANY (p_tight) THEN
        SELECT array_agg(ended.held IS TRUE ORDER BY p.nth)
        INTO _full
        FROM unnest(p_workspaces, p_channels, p_counts, p_tight)
            WITH ORDINALITY AS p (workspace_id, channel_id, taken, tight, nth)
        LEFT JOIN LATERAL (
            SELECT c.max_parallel, started.total + p.taken AS started
            FROM channels c
            CROSS JOIN channel_counters started
            WHERE c.workspace_id = p.workspace_id
              AND c.channel_id = p.channel_id
              AND started.workspace_id = p.workspace_id
              AND started.channel_id = p.channel_id
              AND started.side = 'started'
              AND p.tight
              AND (c.next_allowed_at <= p_now) IS NOT FALSE
            OFFSET 0
        ) AS c ON true
        LEFT JOIN LATERAL (
            SELECT true AS held
            FROM channel_counters k
            WHERE k.workspace_id = p.workspace_id
              AND k.channel_id = p.channel_id
              AND k.side = 'ended'
              AND c.started - k.total >= c.max_parallel
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS ended ON true;
    END IF;

    -- A new statement, so it sees what was enqueued before the locks were granted.
    UPDATE channel_due d
    SET next_due_at = s.next_due_at,
        waits_for_place = s.waits_for_place,
        expected_batch = s.expected_batch,
        low_water = coalesce(s.first_waiting, d.low_water),
        swept_at = CASE WHEN s.first_waiting IS NULL THEN d.swept_at ELSE p_now END
    FROM (
        SELECT p.workspace_id, p.channel_id,
               p.is_full AND has_work AND c.opens_at <= p_now AS waits_for_place,
               CASE
                   WHEN c.opens_at > p_now THEN c.opens_at
                   WHEN p.is_full AND has_work THEN 'infinity'
                   WHEN has_work THEN greatest(c.next_allowed_at, CASE WHEN p.taken > 0 THEN
                       p_now - (_count - row_number() OVER (ORDER BY was.next_due_at, p.workspace_id, p.channel_id))
                           * interval '1 microsecond'
                       ELSE was.next_due_at END)
                   WHEN NOT p.is_closable THEN p_now + interval '5 milliseconds'
                   WHEN sleeper.due IS NULL THEN 'infinity'
                   ELSE greatest(sleeper.due, c.next_allowed_at)
               END AS next_due_at,
               greatest(1, least(CASE WHEN p.more THEN 4 ELSE 1 END * p.taken, _most)) AS expected_batch,
               l.first_waiting
        FROM unnest(p_workspaces, p_channels, p_counts, p_more, _closable, _full)
            AS p (workspace_id, channel_id, taken, more, is_closable, is_full)
        CROSS JOIN LATERAL ( -- a row that another transaction makes due stays due
            SELECT d.next_due_at, d.low_water, d.swept_at
            FROM channel_due d
            WHERE d.workspace_id = p.workspace_id
              AND d.channel_id = p.channel_id
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS was
        CROSS JOIN LATERAL (
            SELECT c.next_allowed_at, channel_opens_at(c, p_now) AS opens_at
            FROM channels c
            WHERE c.workspace_id = p.workspace_id
              AND c.channel_id = p.channel_id
            OFFSET 0
        ) AS c
        CROSS JOIN LATERAL (
            SELECT p.more OR EXISTS (
                       SELECT 1
                       FROM delivery_queue q
                       WHERE q.workspace_id = p.workspace_id
                         AND q.channel_id = p.channel_id
                         AND NOT q.asleep
                         AND q.sort_at >= was.low_water
                         AND q.claim_token IS NULL
                       ORDER BY q.sort_at, q.delivery_id
                       OFFSET p.taken
                   ) AS has_work,
                   CASE WHEN p.is_closable AND was.swept_at < p_now - interval '200 milliseconds' THEN (
                       SELECT q.sort_at
                       FROM delivery_queue q
                       WHERE q.workspace_id = p.workspace_id
                         AND q.channel_id = p.channel_id
                         AND NOT q.asleep
                         AND q.sort_at >= was.low_water
                         AND q.claim_token IS NULL
                       ORDER BY q.sort_at
                       LIMIT 1
                   ) END AS first_waiting
            OFFSET 0
        ) AS l
        LEFT JOIN LATERAL (
            SELECT q.sort_at AS due
            FROM delivery_queue q
            WHERE NOT has_work
              AND q.workspace_id = p.workspace_id
              AND q.channel_id = p.channel_id
              AND q.asleep
              AND q.claim_token IS NULL
            ORDER BY q.sort_at
            LIMIT 1
        ) AS sleeper ON true
    ) AS s
    WHERE d.workspace_id = s.workspace_id
      AND d.channel_id = s.channel_id
      AND ((d.next_due_at, d.waits_for_place, d.expected_batch) IS DISTINCT FROM (s.next_due_at, s.waits_for_place, s.expected_batch)
           OR s.first_waiting IS NOT NULL);
END $$;
