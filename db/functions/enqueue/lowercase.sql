-- lowercase(text) -> the text in lower case, as ingest writes tags
--
-- The locale of the database may know no letters but those of ASCII (C, before PostgreSQL 17), so Cyrillic is mapped
-- here. A final sigma is an ordinary one: Python and PostgreSQL disagree about the end of a word.
CREATE OR REPLACE FUNCTION lowercase(p_text text)
RETURNS text
LANGUAGE sql
IMMUTABLE PARALLEL SAFE
AS $$
    SELECT translate(lower(p_text),
                     'ЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯς',
                     'ѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюяσ')
$$;
