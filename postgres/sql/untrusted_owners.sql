-- Returns the schema ($1), and those of durable's tables and views in it ($2), whose owner is not
-- trusted. The owner could execute code with the rights of this role, by a trigger, a rule or a view.
-- Trusted are this role, the database's owner, superusers, and the roles that the program names ($3). A
-- role that this one is a member of is not trusted, because up to PostgreSQL 15 every role can make other
-- roles its members.
SELECT owned.name, pg_get_userbyid(owned.owner)
FROM (
    SELECT '' AS name, n.nspowner AS owner FROM pg_catalog.pg_namespace AS n WHERE n.nspname = $1::text
    UNION ALL
    SELECT c.relname::text, c.relowner
    FROM pg_catalog.pg_class AS c
    JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE n.nspname = $1::text AND c.relname::text = ANY ($2::text[])
) AS owned
WHERE NOT EXISTS (
    SELECT FROM pg_catalog.pg_roles AS r
    WHERE r.oid = owned.owner AND (r.rolsuper OR r.rolname = current_user OR r.rolname::text = ANY ($3::text[]))
)
AND owned.owner <> (SELECT d.datdba FROM pg_catalog.pg_database AS d WHERE d.datname = current_database())
ORDER BY owned.name;
