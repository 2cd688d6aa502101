-- How many bytes the tables of a schema take, with their indexes and what is beside them:
-- what a sleeping run costs is not in its row alone.
SELECT coalesce(sum(pg_catalog.pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1 AND c.relkind = 'r';
