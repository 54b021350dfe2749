-- Tests are executed: what is to be run waits as a queued lease, a runner takes it, and what it prints is kept.

alter table execution
  add column fail_fast int, -- unquarantined failures after which what has not begun is cancelled
  add column variables bytea, -- its own, a JSON object of texts, sealed; a rerun has the same
  add column failed_only boolean not null default false, -- a rerun of the test cases that failed
  add column watched_until timestamptz(3); -- somebody looks at it live: runners tell more often

-- Which keys have sealed anything: bytes 2 to 5 name the key.
create index execution_variable_key on execution (substring(variables from 2 for 4)) where variables is not null;

alter table test_run add column reason text; -- why it ended without a report

-- One handing-out of a task, or of a shard of it, to one runner; what is lost is handed out again as another lease.
create table lease (
  project_id uuid not null,
  id uuid not null,
  execution_id uuid not null,
  run_id uuid not null,
  task_slug text not null,
  shard smallint not null, -- 0: the whole task
  shards smallint not null,
  labels text[] not null default '{}', -- what a runner must have
  attempt smallint not null default 1, -- 2: the one before was lost
  -- offered: handed out, and the runner has not said yet that it has it
  status text not null check (status in ('queued', 'offered', 'running', 'reported', 'failed', 'cancelled', 'lost', 'timed_out')),
  stop_reason text, -- the runner is to end it
  stop_told boolean not null default false, -- in an answer to its runner
  overtime boolean not null default false, -- that is why: it counts as a failure
  runner text,
  timeout_seconds int not null,
  queued_at timestamptz(3) not null, -- the queue's order; what is handed out again keeps its place
  offered_at timestamptz(3),
  started_at timestamptz(3),
  expires_at timestamptz(3), -- offered or running: when it is given up
  ended_at timestamptz(3),
  log_bytes bigint not null default 0, -- all that the log ever had
  exit_code int,
  message text,
  primary key (project_id, id),
  foreign key (project_id, run_id) references test_run on delete cascade
);

create index lease_queue on lease (project_id, queued_at, id) where status = 'queued';
create index lease_expiry on lease (expires_at) where status in ('offered', 'running');
create index lease_by_run on lease (project_id, run_id, id);
create index lease_open on lease (project_id, execution_id) where status in ('queued', 'offered', 'running');

-- What a lease has printed: the last mebibyte, in the parts in which it came.
create table lease_log (
  project_id uuid not null,
  lease_id uuid not null,
  start bigint not null, -- byte offset
  bytes bytea not null, -- whole characters of UTF-8
  primary key (project_id, lease_id, start),
  foreign key (project_id, lease_id) references lease on delete cascade
);

-- Who asks for work.
create table runner (
  project_id uuid not null references project (id) on delete cascade,
  name text not null,
  labels text[] not null,
  task_slugs text[], -- null: all
  free smallint not null,
  held smallint not null,
  seen_at timestamptz(3) not null,
  primary key (project_id, name)
);
