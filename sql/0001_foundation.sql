-- Teams, projects and their keys; executions, test runs and the results of their cases.
-- A table of team data starts its primary key with team_id, one of project data with project_id.

create table team (
  id uuid primary key,
  name text not null,
  created_at timestamptz(3) not null default now()
);

create table project (
  team_id uuid not null references team on delete cascade,
  id uuid not null unique,
  name text not null,
  default_branch text not null default 'main',
  execution_timeout_minutes int not null default 30,
  created_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

create table api_key (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  project_id uuid references project (id) on delete cascade, -- null: a team key
  name text,
  leading_part text not null,
  digest bytea not null unique, -- SHA-256 of the whole key, which is stored nowhere
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3), -- coarse: written every few minutes at most
  revoked_at timestamptz(3),
  primary key (team_id, id)
);

create unique index api_key_one_live_per_project on api_key (project_id) where revoked_at is null;

-- What every server of this database must agree on.
create table instance (
  singleton boolean primary key default true check (singleton),
  cursor_secret bytea not null
);

-- The answer to a POST with an Idempotency-Key, kept for a day.
create table idempotency (
  team_id uuid not null references team on delete cascade,
  scope_id uuid not null, -- the project or the team whose key asked: a new key may repeat the old one's request
  key text not null,
  digest bytea not null, -- of the request
  status smallint not null,
  content_type text,
  body text,
  created_at timestamptz(3) not null default now(),
  primary key (team_id, scope_id, key)
);

create index idempotency_age on idempotency (created_at);

-- One trigger of one or more tasks.
create table execution (
  project_id uuid not null references project (id) on delete cascade,
  id uuid not null,
  key text, -- the client's own name for it, so that parallel jobs meet
  status text not null check (status in ('queued', 'running', 'passed', 'failed', 'cancelled', 'timed_out')),
  mode text not null default 'report',
  trigger text not null,
  branch text,
  commit text,
  pull_request text,
  build_url text,
  environment text,
  timeout_minutes int not null,
  expires_at timestamptz(3), -- moves on with every arrival; null once complete
  created_at timestamptz(3) not null,
  started_at timestamptz(3),
  completed_at timestamptz(3),
  primary key (project_id, id)
);

create unique index execution_key on execution (project_id, key) where key is not null;
create index execution_by_status on execution (project_id, status, id desc);
create index execution_by_branch on execution (project_id, branch, id desc);
create index execution_by_environment on execution (project_id, environment, id desc) where environment is not null;
create index execution_expiry on execution (expires_at) where expires_at is not null;

-- A run as the list answers it. The functions in it depend on no setting in this form, so it may call itself immutable.
create function test_run_element(
  execution_id uuid, task_slug text, completed_at timestamptz, passed int, failed int, skipped int
) returns text language sql immutable parallel safe as $$
  select '{"executionId":"' || execution_id || '","taskSlug":' || to_json(task_slug)
    || ',"completedAt":"' || to_char(completed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    || '","passed":' || passed || ',"failed":' || failed || ',"skipped":' || skipped
    || ',"total":' || passed + failed + skipped || '}'
$$;

-- One task of an execution and what came of it; declared tasks are there before their results.
create table test_run (
  project_id uuid not null,
  id uuid not null,
  execution_id uuid not null,
  task_slug text not null,
  status text not null check (status in ('queued', 'running', 'passed', 'failed', 'cancelled', 'timed_out')),
  declared boolean not null default false,
  shards smallint not null default 1, -- as announced by the uploads
  attempt smallint not null default 0, -- 0: nothing has arrived
  passed int not null default 0,
  failed int not null default 0,
  skipped int not null default 0,
  flaky int not null default 0,
  verdict text check (verdict in ('passed', 'failed')), -- of what is in so far
  duration_ms bigint not null default 0, -- of all attempts together
  format text,
  exit_code int,
  warnings text[] not null default '{}',
  started_at timestamptz(3),
  completed_at timestamptz(3), -- null until every announced shard is in; moves only with a further attempt
  -- The list is asked for more often than everything else: its elements are written once and not at every reading.
  element text generated always as
    (test_run_element(execution_id, task_slug, completed_at, passed, failed, skipped)) stored,
  primary key (project_id, id),
  unique (project_id, execution_id, task_slug),
  foreign key (project_id, execution_id) references execution on delete cascade
);

create index test_run_page on test_run (project_id, completed_at desc, id desc);
create index test_run_by_task on test_run (project_id, task_slug, completed_at desc, id desc);

-- One upload to a run: the n-th attempt of one shard.
create table attempt (
  project_id uuid not null,
  run_id uuid not null,
  shard smallint not null,
  number smallint not null,
  digest bytea not null, -- of what was uploaded: the same again changes nothing
  format text not null,
  partial boolean not null, -- the report broke off
  exit_code int,
  exit_case int, -- the test_case that stands for a non-zero exit code without a failed case
  passed int not null default 0, -- counts that were declared without their cases
  failed int not null default 0,
  skipped int not null default 0,
  warnings text[] not null,
  received_at timestamptz(3) not null,
  primary key (project_id, run_id, shard, number),
  unique (project_id, run_id, shard, digest),
  foreign key (project_id, run_id) references test_run on delete cascade
);

-- The dictionary of test cases: a result names one by its number. It has no foreign key, because 100,000 new cases would
-- look up the same project 100,000 times.
create table test_case (
  project_id uuid not null,
  number int not null, -- from 1, in the order in which cases were first seen
  id uuid not null unique,
  identity uuid not null unique, -- the first 128 bits of SHA-256 of project, task, suite, name, file and occurrence
  task_slug text not null,
  suite text not null,
  name text not null,
  file text,
  first_seen_at timestamptz(3) not null,
  primary key (project_id, number)
);

-- The results of a run, packed: a row holds those of up to 128 neighbouring test cases, which makes ten million results
-- cheap (about a tenth of a row each) and reads well both ways: by run, and by test case through the block.
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
);

create index case_result_history on case_result (project_id, block, run_id desc);

-- What a result has to tell beyond its status: only there when there is something.
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
);
