-- What is asked for stays as quick as it was, however much is stored.

-- The runs of a task are asked for by an expression: the run of a task in an execution was looked for among all runs of the
-- task, where tasks were many and most of them rare.
drop index test_run_by_task;
create index test_run_by_task on test_run (project_id, (task_slug || ''), completed_at desc, id desc);
