-- action_document(action) -> the action as clients read it, see autopost_contracts.bot_actions
--
-- STABLE, as jsonb_build_object is: otherwise the planner would not inline it.
CREATE OR REPLACE FUNCTION action_document(p_action bot_actions)
RETURNS jsonb
LANGUAGE sql
STABLE
AS $$
    SELECT jsonb_build_object(
        'workspaceId', p_action.workspace_id,
        'chatId', p_action.chat_id,
        'actionId', p_action.action_id,
        'actionType', p_action.action_type,
        'status', p_action.status,
        'displayText', p_action.display_text,
        'payload', p_action.payload,
        'createdAt', utc_text(p_action.created_at),
        'updatedAt', utc_text(p_action.updated_at)
    )
$$;
