-- Reports whether the table of migrations ($1, quoted) exists.
--
-- Every name is qualified: this runs under a search_path that may be anybody's.
SELECT pg_catalog.to_regclass($1::pg_catalog.text) IS NOT NULL;
