-- Search rows of up to a page are stored as they are.

-- Vectors hardly become smaller: compressing those of 2 to 8 kB took 7 % of the time of writing
-- documents, and searches had to expand them again. Rows that exist stay as they are.
ALTER TABLE section_search SET (toast_tuple_target = 8160);
