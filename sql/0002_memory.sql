-- What Assay remembers of a test case beyond single runs: its health, its quarantine, its owner; results by month.

-- The id of a test case ends in its number, so that it needs no index of its own.
alter table test_case drop constraint test_case_id_key;
update test_case set id = (left(id::text, 28) || lpad(to_hex(number), 8, '0'))::uuid;
alter table test_case add column owner text;

create table quarantine (
  project_id uuid not null references project (id) on delete cascade,
  test_case int not null, -- test_case.number
  reason text not null,
  until timestamptz(3), -- null: until somebody ends it
  created_at timestamptz(3) not null default now(),
  primary key (project_id, test_case)
);

alter table project add column retention_days int; -- null: the server's; 0: for ever

alter table test_run
  add column quarantined int not null default 0, -- failed cases that the verdict does not count
  add column outage boolean not null default false, -- nearly everything failed: says nothing of the cases
  add column remembered boolean; -- false: complete, but case_health does not know its results yet; null: not complete
update test_run set remembered = false where completed_at is not null;
create index test_run_to_remember on test_run (project_id, id) where not remembered;

-- One row per test case that has had a result in a complete run. A result is counted when it passed or failed, in a run
-- that was no outage.
create table case_health (
  project_id uuid not null references project (id) on delete cascade,
  test_case int not null, -- test_case.number
  runs int not null default 0, -- results counted
  failures int not null default 0, -- of those
  recent text not null default '', -- the last 50 counted, newest last: p passed, f failed; capital: evidence of flakiness
  flake_rate real not null default 0, -- share of evidence in recent
  flaky_at timestamptz(3), -- the last evidence
  clean int not null default 0, -- passed in a row since the last failure or evidence
  broken int not null default 0, -- failed in a row on the default branch
  timed int not null default 0, -- results that tell a duration
  total_ms bigint not null default 0, -- of those
  recent_ms int[] not null default '{}', -- the last 20 of those
  p95_ms int,
  last_status text,
  last_run_id uuid,
  last_run_at timestamptz(3),
  primary key (project_id, test_case)
) with (fillfactor = 70);

create index case_health_by_flake_rate on case_health (project_id, flake_rate, test_case) where flake_rate > 0;
create index case_health_by_failures on case_health (project_id, failures, test_case) where failures > 0;
create index case_health_by_p95 on case_health (project_id, p95_ms, test_case) where p95_ms is not null;
create index case_health_by_last_run on case_health (project_id, last_run_at, test_case) where last_run_at is not null;
create index case_health_flaky on case_health (project_id, test_case) where flaky_at is not null;
create index case_health_broken on case_health (project_id, test_case) where broken >= 5;

create function flake_rate_of(recent text) returns real language sql immutable parallel safe as $$
  select coalesce((length(recent) - length(translate(recent, 'PF', '')))::real / nullif(length(recent), 0), 0)
$$;

-- Runs on one commit are compared: both outcomes of one case there are evidence of flakiness.
create index execution_by_commit on execution (project_id, commit) where commit is not null;

-- By month of the run, which its id tells: dropping a month gives its disk space back at once.
alter table case_result rename to case_result_old;
alter table case_result_old rename constraint case_result_pkey to case_result_old_pkey;
drop index case_result_history;
create table case_result (
  project_id uuid not null,
  run_id uuid not null,
  block int not null, -- test_case.number / 128
  test_cases int[] not null, -- test_case.number, ascending
  statuses text not null, -- a letter per case: p passed, f failed, s skipped; a capital one had failed before in this run
  attempts smallint[], -- the attempt that each result is from; null: all from the first
  durations int[] not null, -- milliseconds; null: unknown
  primary key (project_id, run_id, block),
  foreign key (project_id, run_id) references test_run on delete cascade
) partition by range (run_id);
create index case_result_history on case_result (project_id, block, run_id desc);
create table case_result_default partition of case_result default;
insert into case_result select * from case_result_old;
drop table case_result_old;

alter table case_detail rename to case_detail_old;
alter table case_detail_old rename constraint case_detail_pkey to case_detail_old_pkey;
create table case_detail (
  project_id uuid not null,
  run_id uuid not null,
  test_case int not null, -- test_case.number
  attempt smallint not null,
  kind text,
  line int,
  runs int not null default 1, -- how often the case ran for this result
  message text,
  stack text,
  output text,
  properties json,
  primary key (project_id, run_id, test_case, attempt),
  foreign key (project_id, run_id) references test_run on delete cascade
) partition by range (run_id);
create table case_detail_default partition of case_detail default;
insert into case_detail select * from case_detail_old;
drop table case_detail_old;
