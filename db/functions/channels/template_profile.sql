-- template_profile() trigger on templates
--
-- A template version that is added, changed or deleted is a new profile for every channel that uses it.
CREATE OR REPLACE FUNCTION template_profile()
RETURNS trigger
LANGUAGE plpgsql
SECURITY DEFINER SET search_path = public, pg_temp
AS $$
BEGIN
    UPDATE channels
    SET template_ref = template_ref
    WHERE (workspace_id, template_ref) IN ((NEW.workspace_id, NEW.template_id), (OLD.workspace_id, OLD.template_id));
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER template_profile
    AFTER INSERT OR UPDATE OR DELETE ON templates
    FOR EACH ROW EXECUTE FUNCTION template_profile();
