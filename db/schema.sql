-- The whole schema, in the order of its parts. Into an empty database: psql -v ON_ERROR_STOP=1 -f db/schema.sql
-- Run it from the root of the repository or from db/: functions are found by walking their folders.
-- It writes what `autopost migrate` has to know, so a database loaded this way can be migrated afterwards.

\set folder `test -d functions && echo . || echo db`
\cd :folder
\encoding UTF8
SET client_min_messages = warning;
SET check_function_bodies = off;

\i tables/000_ledger.sql
\i tables/010_types.sql
\i tables/020_tenants.sql
\i tables/030_channels.sql
\i tables/040_content.sql
\i tables/050_queue.sql
\i tables/060_events.sql
\i tables/070_ingress.sql
\i tables/080_media.sql
\i tables/090_pull.sql
\i tables/100_alerts.sql
\i tables/110_monitor.sql
\i tables/120_bot.sql
\i tables/130_publications.sql

\set functions `cat functions/*/*.sql`
:functions

\set views `cat views/*.sql`
:views

\set grants `cat grants/*.sql`
:grants

SELECT ensure_event_partitions();

\set tables `cat tables/*.sql`
INSERT INTO schema_ledger (name, checksum) VALUES ('tables', encode(sha256(convert_to(:'tables', 'UTF8')), 'hex'));
