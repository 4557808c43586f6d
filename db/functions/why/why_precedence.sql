-- why_precedence() -> the names of all gates, in the order of precedence
--
-- Several gates may hold a delivery at once; the one that comes first here is the answer. docs/why.md explains each of
-- them. `lease` holds a delivery that is with a worker and `staged_media` a post that has no delivery yet;
-- `queued_behind` means that nothing else holds it.
CREATE OR REPLACE FUNCTION why_precedence()
RETURNS text[]
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT '{workspace_disabled,workspace_paused,set_aside,channel_disabled,channel_paused,schedule,window,retry_backoff,
             hold,claim_blocked,platform_outage,group_cooldown,group_slot,channel_slot,max_parallel,lease,staged_media,queued_behind}'::text[]
$$;
