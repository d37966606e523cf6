-- documents ---------------------------------------------------------------------------------------
ALTER TABLE sections ADD COLUMN anchors text;
COMMENT ON COLUMN sections.anchors IS
    'Further ids and names in the text of the section, one per line: links that lead into it. NULL if there are none.';
