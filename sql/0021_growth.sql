-- What is asked for stays as quick as it was, however much is stored.

-- The runs of a task are asked for by an expression: the run of a task in an execution was looked for among all runs of the
-- task, where tasks were many and most of them rare.
drop index test_run_by_task;
create index test_run_by_task on test_run (project_id, (task_slug || ''), completed_at desc, id desc);

-- How the default branch did on a day, once the day is over, until something of that day changes: that was counted anew for
-- every look at a project, over tens of thousands of executions.
create table branch_day (
  project_id uuid not null,
  day date not null, -- in UTC, on which the executions were completed
  branch text not null, -- with those that name none
  sample boolean not null,
  executions int not null,
  passed int not null,
  p50_ms bigint, -- null: without any run
  p95_ms bigint,
  primary key (project_id, day, branch, sample),
  foreign key (project_id) references project (id) on delete cascade
);

create index execution_by_day on execution (project_id, branch, completed_at) where completed_at is not null;

-- An upload writes the execution of every run that it changes. Whoever keeps a day has the lock for himself: what changes the
-- day is either seen by him, or waits and takes away what he has kept.
create function forget_branch_day() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended(coalesce(new.project_id, old.project_id)::text, 7));
  delete from branch_day where project_id in (old.project_id, new.project_id)
    and day in ((old.completed_at at time zone 'UTC')::date, (new.completed_at at time zone 'UTC')::date);
  return null;
end $$;

-- A day that is not over is never kept; so most uploads have nothing to do here.
create trigger execution_day_inserted after insert on execution for each row
  when (new.completed_at < date_trunc('day', now(), 'UTC')) execute function forget_branch_day();
create trigger execution_day_updated after update on execution for each row
  when (old.completed_at < date_trunc('day', now(), 'UTC') or new.completed_at < date_trunc('day', now(), 'UTC'))
  execute function forget_branch_day();
create trigger execution_day_deleted after delete on execution for each row
  when (old.completed_at < date_trunc('day', now(), 'UTC')) execute function forget_branch_day();
