-- Finding a signed request's endpoint, and the endpoints with refusals that nobody has been told of.

CREATE INDEX workspace_endpoints_by_id ON workspace_endpoints (endpoint_id);

CREATE INDEX ingress_gates_untold ON ingress_gates (reported_at) WHERE refused <> '{}';

-- The new one takes the calls of a service that does not know it yet: its last parameter has a default.
-- squawk-ignore ban-drop-function
DROP FUNCTION IF EXISTS refuse_ingress(uuid, uuid, text, event_action, text, jsonb, text);
