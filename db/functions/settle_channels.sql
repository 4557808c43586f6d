-- settle_channels(workspace_id, channel_ids, served, blocked, closable, now)
--
-- The end of a claim: writes for each channel it looked at when it is next worth a look.
--
-- own gates closed     when they open
-- blocked, has work    never: the commit that frees a place makes it due
-- work waiting         when the channel's next slot is; one that was served goes behind those that were not
-- nothing awake        when the next sleeper is due, never if there is none; but a channel that could not be
--                      locked (not closable) is being fed, and is looked at again at once
CREATE OR REPLACE FUNCTION settle_channels(
    p_workspace_id uuid,
    p_channel_ids uuid[],
    p_served uuid[],
    p_blocked uuid[],
    p_closable uuid[],
    p_now timestamptz
)
RETURNS void
LANGUAGE sql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
    UPDATE channel_due d
    SET next_due_at = s.next_due_at,
        waits_for_place = s.waits_for_place
    FROM (
        SELECT c.channel_id,
               blocked AND awake AND opens_at <= p_now AS waits_for_place,
               CASE
                   WHEN opens_at > p_now THEN opens_at
                   WHEN blocked AND awake THEN 'infinity'
                   WHEN awake THEN greatest(c.next_allowed_at, CASE WHEN served THEN p_now ELSE was.next_due_at END)
                   WHEN NOT c.channel_id = ANY (coalesce(p_closable, '{}')) THEN p_now + interval '5 milliseconds'
                   WHEN sleeper.due IS NULL THEN 'infinity'
                   ELSE greatest(sleeper.due, c.next_allowed_at)
               END AS next_due_at
        FROM channels c
        JOIN channel_due was
          ON was.workspace_id = c.workspace_id
         AND was.channel_id = c.channel_id
        CROSS JOIN LATERAL channel_opens_at(c, p_now) AS opens_at
        CROSS JOIN LATERAL (
            SELECT c.channel_id = ANY (coalesce(p_blocked, '{}')), c.channel_id = ANY (coalesce(p_served, '{}'))
        ) AS b (blocked, served)
        CROSS JOIN LATERAL (
            SELECT EXISTS (
                SELECT 1
                FROM delivery_queue q
                WHERE q.workspace_id = p_workspace_id
                  AND q.channel_id = c.channel_id
                  AND NOT q.asleep
                  AND q.claim_token IS NULL
            )
        ) AS a (awake)
        LEFT JOIN LATERAL (
            SELECT q.sort_at AS due
            FROM delivery_queue q
            WHERE q.workspace_id = p_workspace_id
              AND q.channel_id = c.channel_id
              AND q.asleep
            ORDER BY q.sort_at
            LIMIT 1
        ) AS sleeper ON true
        WHERE c.workspace_id = p_workspace_id
          AND c.channel_id = ANY (p_channel_ids)
    ) AS s
    WHERE d.workspace_id = p_workspace_id
      AND d.channel_id = s.channel_id
      AND (d.next_due_at, d.waits_for_place) IS DISTINCT FROM (s.next_due_at, s.waits_for_place)
$$;
