-- Reports whether the table of migrations ($1, quoted) exists.
SELECT pg_catalog.to_regclass($1::pg_catalog.text) IS NOT NULL;
