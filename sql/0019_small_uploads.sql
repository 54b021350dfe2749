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
