-- How long test cases and tasks usually take on the default branch, and which results took longer.

-- A test case without a row has not taken 200 ms or more on the default branch (rules/slower.ts).
create table case_duration (
  project_id uuid not null references stored_project (id) on delete cascade,
  test_case int not null, -- test_case.number
  passed_ms int[] not null, -- the last 100 passes on the default branch, the newest last, without the slowness of their runs
  usual_ms int, -- their median; null: fewer than 10
  primary key (project_id, test_case)
) with (fillfactor = 70);

-- Until now only the last 20 results of all branches were stored.
insert into case_duration (project_id, test_case, passed_ms, usual_ms)
select project_id, test_case, recent_ms, case when cardinality(recent_ms) >= 10 then
  (select percentile_disc(0.5) within group (order by ms) from unnest(recent_ms) as ms) end
from case_health where 200 <= any (recent_ms);

create table task_duration (
  project_id uuid not null references stored_project (id) on delete cascade,
  task_slug text not null,
  passed_ms bigint[] not null, -- wall time of the last 100 passed runs on the default branch, the newest last
  usual_ms bigint, -- their median; null: fewer than 10
  primary key (project_id, task_slug)
);

-- Passed results that took longer than usual, as known when they arrived.
create table slower_result (
  project_id uuid not null,
  run_id uuid not null,
  test_case int not null, -- test_case.number
  duration_ms int not null,
  usual_ms int not null, -- the median
  longest_ms int not null,
  primary key (project_id, run_id, test_case),
  foreign key (project_id, run_id) references test_run on delete cascade
);

alter table test_run add column slower json; -- usualMs and longestMs of a passed run that took longer than usual; null: it did not
