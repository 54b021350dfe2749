-- What CI posts all day, small reports, costs less to store.

-- In SQL it was planned anew for every row: to_json and to_char are not immutable, so that it could not be inlined.
create or replace function test_run_element(
  execution_id uuid, task_slug text, completed_at timestamptz, passed int, failed int, skipped int
) returns text language plpgsql immutable parallel safe as $$
begin
  return '{"executionId":"' || execution_id || '","taskSlug":' || to_json(task_slug)
    || ',"completedAt":"' || to_char(completed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    || '","passed":' || passed || ',"failed":' || failed || ',"skipped":' || skipped
    || ',"total":' || passed + failed + skipped || '}';
end $$;

-- What a new execution is compared with: the last one of its branch that is over, however many are not.
create index execution_baseline on execution (project_id, branch, id desc)
  where status in ('passed', 'failed') and not sample;

-- An event costs as much to store as a run: its execution is no expression over its data any more, and the index for the
-- oldest is small.
alter table event add column execution_id uuid; -- what it tells of, as far as that is one execution
update event set execution_id = coalesce(data->'execution'->>'id', data->'bugReport'->>'lastExecutionId')::uuid
  where coalesce(data->'execution'->>'id', data->'bugReport'->>'lastExecutionId') is not null;
drop index event_by_execution;
create index event_by_execution on event (project_id, execution_id, xact, id) where execution_id is not null;
drop index event_age;
create index event_age on event using brin (occurred_at) with (pages_per_range = 32);

-- Whether these very bytes were there before is asked with the execution locked; no second one can come between.
alter table attempt drop constraint attempt_project_id_run_id_shard_digest_key;
