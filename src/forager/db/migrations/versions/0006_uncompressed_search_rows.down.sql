-- Back to schema 0005.

ALTER TABLE section_search RESET (toast_tuple_target);
