-- Executions of forks: their results are shown, and counted nowhere. rules/untrusted.ts says where they are stored.
alter table execution add column untrusted boolean not null default false;
-- As that of its execution: lists of runs are read without their executions.
alter table test_run add column untrusted boolean not null default false;

drop index test_run_page;
create index test_run_page on test_run (project_id, completed_at desc, id desc) where not untrusted;
drop index test_run_by_task;
create index test_run_by_task on test_run (project_id, (task_slug || ''), completed_at desc, id desc) where not untrusted;

-- The figures of a day do not change with an untrusted execution.
drop trigger execution_day_inserted on execution;
create trigger execution_day_inserted after insert on execution for each row
  when (not new.untrusted and new.completed_at < date_trunc('day', now(), 'UTC')) execute function forget_branch_day();
drop trigger execution_day_updated on execution;
create trigger execution_day_updated after update on execution for each row
  when (not new.untrusted
    and (old.completed_at < date_trunc('day', now(), 'UTC') or new.completed_at < date_trunc('day', now(), 'UTC')))
  execute function forget_branch_day();
drop trigger execution_day_deleted on execution;
create trigger execution_day_deleted after delete on execution for each row
  when (not old.untrusted and old.completed_at < date_trunc('day', now(), 'UTC')) execute function forget_branch_day();
