-- Back to schema 0004.

ALTER TABLE section_search RESET (toast_tuple_target);
