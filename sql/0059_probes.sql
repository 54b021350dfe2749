-- Probes: executions that run one test case at one commit. They are stored as untrusted executions are, and so counted nowhere.
alter table execution add column probe boolean not null default false; -- then untrusted as well
-- Lists of executions leave probes out, however many there are.
create index execution_newest on execution (project_id, id desc) where not probe;

alter table lease add column probe boolean not null default false;
alter table runner add column probe_slugs text[] not null default '{}'; -- tasks that it can run for one test case at any commit

create table probe (
  project_id uuid not null references stored_project (id) on delete cascade,
  execution_id uuid not null,
  kind text not null default 'test' check (kind in ('test', 'commits')),
  test_case int, -- test_case.number; null for kind 'commits'
  task_slug text not null,
  commit text, -- null for kind 'commits'
  result text check (result in ('passed', 'failed', 'no_build', 'no_result')), -- null until ended_at, except for no_build
  flaky boolean not null default false, -- it passed, after it had failed in the same run
  fingerprint uuid, -- of the failure, as case_detail.cause
  verification_id uuid,
  culprit_search_id uuid,
  created_at timestamptz(3) not null,
  ended_at timestamptz(3), -- set in the transaction that ends the execution
  primary key (project_id, execution_id),
  foreign key (project_id, execution_id) references execution on delete cascade
);

create index probe_of_verification on probe (project_id, verification_id, execution_id) where verification_id is not null;
create index probe_of_culprit_search on probe (project_id, culprit_search_id, execution_id) where culprit_search_id is not null;

-- Runs of one test case at one commit, until it is certain how often it fails.
create table verification (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null,
  test_case int not null, -- test_case.number
  commit text not null,
  runs int not null, -- as many as were asked for
  release boolean not null, -- a quarantine ends if it passes
  status text not null default 'running'
    check (status in ('running', 'passed', 'flaky', 'failed', 'inconclusive', 'cancelled')),
  passed int not null default 0,
  failed int not null default 0,
  no_result int not null default 0,
  no_build int not null default 0, -- among no_result
  released boolean not null default false, -- it has ended a quarantine
  new_in_execution_id uuid, -- the execution that has added the test; null: somebody has begun it
  account_id uuid, -- of the member that has begun it
  requested_by text not null,
  created_at timestamptz(3) not null,
  ended_at timestamptz(3),
  next_check_at timestamptz(3), -- null once it has ended
  primary key (project_id, id)
);

create index verification_of_case on verification (project_id, test_case, id desc);
create index verification_due on verification (next_check_at) where next_check_at is not null;
create index verification_running on verification (project_id) where next_check_at is not null;

-- Tasks whose new tests are to be run several times more, after their execution has ended.
create table new_test_check (
  project_id uuid not null,
  run_id uuid not null,
  execution_id uuid not null,
  runs int not null, -- of each test
  is_done boolean not null default false, -- their verifications have begun
  primary key (project_id, run_id),
  foreign key (project_id, run_id) references test_run on delete cascade
);

create index new_test_check_open on new_test_check (project_id, execution_id) where not is_done;

create index verification_of_new_tests on verification (project_id, new_in_execution_id, id) where new_in_execution_id is not null;
