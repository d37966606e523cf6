-- documents ---------------------------------------------------------------------------------------
ALTER TABLE sections DROP COLUMN anchors;
