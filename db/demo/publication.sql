-- What became of a publication, and whether its command is in the stream. $1 workspace, $2 publication
SELECT p.status, p.pause_code, p.published_message_id,
       ARRAY(
           SELECT substr(e.action::text, length('publication_') + 1)
           FROM events e
           WHERE e.workspace_id = p.workspace_id
             AND e.meta ->> 'publication_id' = p.publication_id::text
             AND e.action::text LIKE 'publication\_%'
           ORDER BY e.seq
       ) AS life,
       NOT EXISTS (
           SELECT 1
           FROM command_outbox o
           WHERE o.workspace_id = p.workspace_id
             AND o.payload ->> 'publication_id' = p.publication_id::text
             AND o.published_at IS NULL
       ) AS relayed
FROM publications p
WHERE p.workspace_id = $1
  AND p.publication_id = $2
