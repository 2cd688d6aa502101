-- What a role that may create in public can lay in wait there. Everything notes who executed it,
-- in which statement, in public.loot.
CREATE TABLE public.loot (who text, what text, query text);
GRANT INSERT, SELECT ON public.loot TO PUBLIC;

CREATE FUNCTION public.took(what text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS
$$ BEGIN INSERT INTO public.loot VALUES (current_user, what, current_query()); END $$;

-- Operators of all kinds that durable's statements use, for every pair of types.
DO $$
DECLARE
    op text; l text; r text; n integer := 0;
    types text[] := '{int2,int4,int8,text,uuid,bytea,timestamptz,bool,interval,name,oid,xid8}';
BEGIN
    FOREACH op IN ARRAY '{=,<>,<,<=,>,>=,&,|,+,-,||,>>,~~}'::text[] LOOP
        FOREACH l IN ARRAY types LOOP
            FOREACH r IN ARRAY types LOOP
                n := n + 1;
                EXECUTE pg_catalog.format('CREATE FUNCTION public.op_%s(pg_catalog.%s, pg_catalog.%s) RETURNS pg_catalog.%s LANGUAGE plpgsql AS %L', n,
                    l, r, CASE WHEN op IN ('=', '<>', '<', '<=', '>', '>=', '~~') THEN 'bool' ELSE l END,
                    pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN NULL; END', pg_catalog.concat_ws(' ', l, op, r)));
                EXECUTE pg_catalog.format('CREATE OPERATOR public.%s (LEFTARG = pg_catalog.%s, RIGHTARG = pg_catalog.%s, FUNCTION = public.op_%s)', op, l, r, n);
            END LOOP;
        END LOOP;
    END LOOP;
END $$;

-- Functions of the same names and types as PostgreSQL's own, and with text where those have name.
DO $$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT p.proname, a.args, pg_get_function_result(p.oid) AS result
        FROM pg_proc AS p
        CROSS JOIN LATERAL (
            SELECT pg_get_function_identity_arguments(p.oid) AS args
            UNION
            SELECT replace(pg_get_function_identity_arguments(p.oid), 'name', 'text')
        ) AS a
        WHERE p.prokind = 'f' AND p.pronamespace = 'pg_catalog'::regnamespace
          AND p.proname = ANY ('{set_config,current_setting,pg_backend_pid,pg_notify,now,clock_timestamp,unnest,hashtextextended,
              pg_advisory_lock,pg_advisory_xact_lock,pg_try_advisory_xact_lock_shared,to_regclass,current_database,cardinality,
              pg_current_snapshot,pg_snapshot_xmin,pg_current_xact_id,pg_postmaster_start_time,convert_from,pg_get_userbyid,
              gen_random_uuid,sha256,uuid_send,array_length,date_trunc,make_interval}'::text[])
    LOOP
        BEGIN
            EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS %L', f.proname, f.args, f.result,
                format('BEGIN PERFORM public.took(%L); RETURN%s; END', f.proname, CASE WHEN f.result LIKE 'SETOF%' OR f.result = 'void' THEN '' ELSE ' NULL' END));
        EXCEPTION WHEN duplicate_function OR invalid_function_definition THEN
        END;
    END LOOP;
END $$;

-- Types that check what becomes one of them, where public is searched first.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY '{text,uuid,bytea,timestamptz}'::text[] LOOP
        EXECUTE pg_catalog.format('CREATE FUNCTION public.check_%s(pg_catalog.%s) RETURNS pg_catalog.bool LANGUAGE plpgsql AS %L', t, t,
            pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN true; END', 'type ' || t));
        EXECUTE pg_catalog.format('CREATE DOMAIN public.%s AS pg_catalog.%s CHECK (public.check_%s(VALUE))', t, t, t);
    END LOOP;
END $$;

-- Views that pass for PostgreSQL's catalogs, and tables that pass for durable's.
CREATE FUNCTION public.peek() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM public.took('a catalog'); RETURN true; END $$;
CREATE VIEW public.pg_locks AS SELECT * FROM pg_catalog.pg_locks WHERE public.peek();
CREATE VIEW public.pg_database AS SELECT * FROM pg_catalog.pg_database WHERE public.peek();
CREATE VIEW public.pg_class AS SELECT * FROM pg_catalog.pg_class WHERE public.peek();
CREATE VIEW public.pg_namespace AS SELECT * FROM pg_catalog.pg_namespace WHERE public.peek();
CREATE TABLE public.run ();
CREATE TABLE public.step ();
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
