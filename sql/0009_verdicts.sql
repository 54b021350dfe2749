-- What the record is worth: which build a report belongs to, what a failure says about its build, and about its test case.

-- Build numbers repeat between branches and jobs: a key names an execution together with commit and branch.
drop index execution_key;
create index execution_by_key on execution (project_id, key, id desc) where key is not null;
create index execution_by_pull_request on execution (project_id, pull_request, id desc) where pull_request is not null;
drop index execution_by_commit;
-- A short hash finds the long ones that begin with it, whatever the collation.
create index execution_by_commit on execution (project_id, lower(commit) text_pattern_ops, id desc)
  where commit is not null;

-- A short hash is the long one that begins with it.
create function is_same_commit(a text, b text) returns boolean language sql immutable parallel safe as $$
  select lower(a) = lower(b)
    or a ~ '^[0-9a-fA-F]{7,64}$' and b ~ '^[0-9a-fA-F]{7,64}$'
      and (starts_with(lower(a), lower(b)) or starts_with(lower(b), lower(a)))
$$;

-- Flaky without retries: failures on the default branch in separate short episodes. A case is flaky, or not, as last
-- announced: it recovers after as many passes as its own rate asks for, not by the clock.
create function within_last(marks int[], total int, last int) returns int language sql immutable parallel safe as $$
  select count(*)::int from unnest(marks) as mark where mark > total - last
$$;

alter table case_health
  add column main_runs int not null default 0, -- results counted on the default branch
  add column episodes int[] not null default '{}', -- main_runs at the end of the last 30 short episodes of failure there
  add column episode_at timestamptz(3), -- the end of the last of those
  add column mended int, -- main_runs at the end of the last long one
  add column flaky_since timestamptz(3),
  add column flaky_signs text not null default '', -- since then: r passed in a retry, c both on one commit, e episodes
  add column recovers_after int not null default 20, -- passes in a row
  add column flakiness real not null default 0; -- share of evidence, each result weighing 0.5 % less than the next

update case_health set flaky = false
  where flaky and not (clean < 20 and (flake_rate > 0 or flaky_at > now() - interval '14 days'));
update case_health set flaky_since = flaky_at where flaky;
drop index case_health_flaky;
create index case_health_flaky on case_health (project_id, test_case) where flaky;

-- What a failure says about its build. The baseline is fixed when the execution begins: what is asked again later has the
-- same answer.
alter table execution add column baseline_id uuid; -- no foreign key: it may be deleted before

-- From a table of their own, in order: from all executions they would be sorted anew for each of them.
create temporary table past_build on commit drop as
  select b.project_id, b.id, b.completed_at from execution b join project p on p.id = b.project_id
  where b.branch = p.default_branch and b.status in ('passed', 'failed');
create index past_build_by_id on past_build (project_id, id desc);
analyze past_build;
update execution e set baseline_id = (
  select b.id from past_build b
  where b.project_id = e.project_id and b.id < e.id and b.completed_at <= e.created_at
  order by b.id desc limit 1)
where project_id in (select project_id from past_build);

-- The failed results of a run as they were judged when they came, outages left out: those blame nobody.
create table failure (
  project_id uuid not null,
  run_id uuid not null,
  test_case int not null, -- test_case.number
  -- new: nothing explains it; flaky: its own record does; main: the default branch fails too, meanwhile; still: the
  -- baseline failed
  blame text not null check (blame in ('new', 'flaky', 'main', 'still', 'quarantined')),
  flake_rate real, -- of a flaky one, as known then
  flaky_at timestamptz(3),
  primary key (project_id, run_id, test_case),
  foreign key (project_id, run_id) references test_run on delete cascade
);

-- A run whose execution has ended while announced shards were missing.
alter table test_run drop constraint test_run_status_check;
alter table test_run add constraint test_run_status_check
  check (status in ('queued', 'running', 'passed', 'failed', 'cancelled', 'timed_out', 'incomplete'));

alter table test_run add column was_outage boolean not null default false; -- at an attempt: what a retry mends is not flaky
update test_run set was_outage = true where outage;
