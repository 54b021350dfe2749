/** Describes the schema of a database, so that two databases can be compared. */

import type { Sql } from "../../../src/database/connect.ts";

/**
 * Returns a line for each column, constraint, index, view, function, trigger, sequence and extension. Months of results are omitted:
 * their number depends on the date. So are names of NOT NULL constraints, which PostgreSQL has had only since version 18.
 */
export async function describeSchema(sql: Sql): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    with relation as (
      select c.oid, c.relname, c.relkind, c.reloptions, c.relpersistence, c.relreplident
      from pg_class c
      where c.relnamespace = 'public'::regnamespace and (not c.relispartition or c.relname like '%\_default')
    )
    select format('relation %s %s %s %s %s', relname, relkind, reloptions, relpersistence, relreplident) as line from relation
    union all
    select format('column %s %s %s %s %s null=%s default=%s generated=%s identity=%s storage=%s compression=%s', relname,
      row_number() over (partition by relname order by attnum), attname, format_type(atttypid, atttypmod), attcollation,
      not attnotnull, pg_get_expr(adbin, adrelid), attgenerated, attidentity, attstorage, attcompression)
    from relation
    join pg_attribute on attrelid = relation.oid and attnum > 0 and not attisdropped
    left join pg_attrdef on adrelid = attrelid and adnum = attnum
    union all
    select format('constraint %s %s %s validated=%s', relname, conname, pg_get_constraintdef(k.oid), convalidated)
    from relation join pg_constraint k on conrelid = relation.oid where contype <> 'n'
    union all
    select format('index %s valid=%s', pg_get_indexdef(indexrelid), indisvalid)
    from relation join pg_index on indrelid = relation.oid
    union all
    select format('view %s %s', relname, pg_get_viewdef(oid)) from relation where relkind = 'v'
    union all
    select format('function %s', pg_get_functiondef(p.oid)) from pg_proc p
    where pronamespace = 'public'::regnamespace
      and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
    union all
    select format('trigger %s enabled=%s', pg_get_triggerdef(t.oid), tgenabled)
    from relation join pg_trigger t on tgrelid = relation.oid where not tgisinternal
    union all
    select format('sequence %s %s %s %s', seqtypid::regtype, relname, seqincrement, seqcycle)
    from relation join pg_sequence on seqrelid = relation.oid
    union all
    select format('statistics %s', pg_get_statisticsobjdef(oid)) from pg_statistic_ext
    union all
    select format('type %s %s', typname, (select string_agg(enumlabel, ',' order by enumsortorder) from pg_enum where enumtypid = t.oid))
    from pg_type t where typnamespace = 'public'::regnamespace and typtype in ('e', 'd')
    union all
    select format('extension %s', extname) from pg_extension
    union all
    select format('policy %s %s', polrelid::regclass, polname) from pg_policy
    union all
    select format('migration %s %s', number, name) from migration`;
  return rows.map(({ line }) => line).sort();
}
