-- replace_post(workspace_id, endpoint_id, run_id, message_id, post_id, post, payload_hash, signature, force)
-- -> the verdict of admit_posts on the new post, or {"verdict": "not_replaced", "cancel": the answer of cancel_post}
--
-- Cancels what a request posted and admits another post, in one transaction: either both or nothing. Nothing is done
-- unless every delivery is cancelled, or ended without being sent, and the new post is accepted or staged. Its rate limit was charged before.
--
-- post         as for admit_posts
-- Appends      cancelled with meta.replaced_by (the run of the new post), and what admit_posts appends
-- Locks        as cancel_post, then as admit_posts: like it, contents of the old post before those of the new one
CREATE OR REPLACE FUNCTION replace_post(
    p_workspace_id uuid,
    p_endpoint_id uuid,
    p_run_id uuid,
    p_message_id uuid,
    p_post_id uuid,
    p_post jsonb,
    p_payload_hash text,
    p_signature jsonb,
    p_force boolean DEFAULT false
)
RETURNS jsonb
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
DECLARE
    _cancel jsonb;
    _verdict jsonb;
BEGIN
    BEGIN
        _cancel := cancel_post(p_workspace_id, p_run_id, p_message_id, p_post_id,
                               p_signature || jsonb_build_object('replaced_by', p_post -> 'run_id'), false, p_force);
        IF _cancel ->> 'verdict' <> 'cancelled'
           OR _cancel -> 'deliveries'
              @? '$[*] ? (@.verdict != "cancelled" && !(@.verdict == "already" && @.status != "sent"))' THEN
            _verdict := jsonb_build_object('verdict', 'not_replaced', 'cancel', _cancel);
        ELSE
            _verdict := admit_posts(p_workspace_id, p_endpoint_id, jsonb_build_array(p_post), ARRAY[p_payload_hash],
                                    ARRAY[true], false, true)::jsonb -> 0;
        END IF;
        IF _verdict ->> 'verdict' NOT IN ('accepted', 'staged') THEN
            RAISE EXCEPTION 'nothing is replaced' USING ERRCODE = 'AP020';
        END IF;
    EXCEPTION WHEN SQLSTATE 'AP020' THEN -- takes back the cancellation; the answer is kept
        NULL;
    END;
    RETURN _verdict;
END $$;
