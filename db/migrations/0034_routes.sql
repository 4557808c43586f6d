-- What the deliveries of a post have in common is worked out once per route, and no longer carried along with each.
CREATE TYPE route AS (place int, rendering int, dedup_ttl_hours int, channel_ids uuid[]);

-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS route_posts(uuid, jsonb, int[]);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_posts(uuid, jsonb, int[], int[], uuid[], int[], int[], timestamptz, boolean);
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS enqueue_distinct_posts(uuid, jsonb, int[], int[], uuid[], int[], int[], timestamptz, boolean);
