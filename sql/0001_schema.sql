-- The schema of Assay.
--
-- A table of team data starts its primary key with team_id, a table of project data with project_id. A column test_case holds
-- test_case.number. A key or token is stored as its SHA-256 only. timestamptz(3): times have milliseconds, as in the API.

-- ---------- Teams and projects ----------
-- The row of a deleted team or project is a tombstone until its data has been removed in batches (src/work/purge.ts). No statement
-- sees tombstones, because the views "team" and "project" omit them. A new column goes into the table and into its view. Foreign
-- keys refer to the table.
create table stored_team (
  id uuid primary key, name text not null, created_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3), -- null: not deleted
  deleted_by text -- the actor, as the audit log names it
);
create index stored_team_deleted on stored_team (deleted_at) where deleted_at is not null;

create view team as select id, name, created_at from stored_team where deleted_at is null;

create table stored_project (
  team_id uuid not null references stored_team on delete cascade, id uuid not null unique,
  name text not null, default_branch text not null default 'main',
  long_lived_branches text[] not null default '{release/*,release-*,releases/*}', -- * matches any text
  execution_timeout_minutes int not null default 30,
  retention_days int, -- null: the server's setting; 0: unlimited
  -- A gate forgives a failure up to this share of the change among its explanations (src/schema/gate.ts).
  gate_share float8 not null default 0.2 check (gate_share between 0.01 and 0.5),
  flaky_rates real[], -- the share of tests that fail by themselves at each rate (src/rules/flaky_rates.ts); null: not fitted yet
  flaky_rates_at timestamptz(3), -- when they were fitted last
  created_at timestamptz(3) not null default now(),
  deleted_at timestamptz(3), -- null: not deleted
  deleted_by text, -- the actor, as the audit log names it
  primary key (team_id, id)
);
create index stored_project_deleted on stored_project (deleted_at) where deleted_at is not null;

create view project as
  select team_id, id, name, default_branch, execution_timeout_minutes, created_at, retention_days, long_lived_branches,
    gate_share, flaky_rates, flaky_rates_at
  from stored_project where deleted_at is null;

-- Returns whether a branch is compared with its own builds instead of those of the default branch.
create function is_long_lived(branch text, patterns text[]) returns boolean language sql immutable parallel safe as $$
  select coalesce(bool_or(branch like
    replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')), false)
  from unnest(patterns) as pattern
$$;

-- The steps of the introduction that a project has skipped or dismissed.
create table onboarding (
  project_id uuid primary key references stored_project (id) on delete cascade, skipped text[] not null default '{}',
  dismissed boolean not null default false
);

-- ---------- Keys and CI trust ----------
create table api_key (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  project_id uuid references stored_project (id) on delete cascade, -- null: a team key
  name text,
  -- A project has one key without a scope and any number of named keys, each with a scope. null: all permissions of its kind.
  scope text check (scope in ('read', 'upload', 'run', 'triage', 'runner')),
  parent_id uuid, -- of a runner's key: the key that it was made with, and with which it is revoked
  trust_rule_id uuid, -- of a CI job's key: the rule that it was made by, and with which it is revoked
  leading_part text not null, -- the beginning of the key, which is shown
  digest bytea not null unique, created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3), -- written every few minutes at most
  expires_at timestamptz(3), revoked_at timestamptz(3),
  primary key (team_id, id), check (scope is null or project_id is not null),
  check ((scope is not distinct from 'runner') = (parent_id is not null))
);
create unique index api_key_one_live_per_project on api_key (project_id) where revoked_at is null and scope is null;
create index api_key_named on api_key (project_id, id) where scope is not null;
create index api_key_by_project on api_key (project_id) where project_id is not null;
create index api_key_by_parent on api_key (parent_id) where parent_id is not null;
create index api_key_of_ci on api_key (project_id, expires_at) where trust_rule_id is not null;

-- CI jobs that get a key of the project for the ID token of their CI system.
create table trust_rule (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null,
  kind text not null check (kind in ('github', 'gitlab')), issuer text not null, repository_id text not null,
  owner_id text, -- of kind github
  repository text, -- the name, which is shown and not compared
  events text[] not null, -- empty: every event
  refs text[] not null, -- empty: every ref
  issuer_keys json, -- public keys; null: those that the issuer publishes
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3), -- written every few minutes at most
  primary key (project_id, id), check ((kind = 'github') = (owner_id is not null))
);
create index trust_rule_by_issuer on trust_rule (issuer) where issuer_keys is null;

-- Each token makes one key. A row is kept until the token has expired.
create table used_ci_token (
  digest bytea primary key, -- SHA-256 of issuer and jti, and of the project if its rule has keys of its own
  attempt bytea, -- SHA-256 of the Idempotency-Key: the same request may be repeated
  key_id uuid not null, expires_at timestamptz(3) not null
);
create index used_ci_token_by_expiry on used_ci_token (expires_at);

-- ---------- People ----------
-- An account may belong to many teams.
create table account (
  id uuid primary key, email text not null, name text not null,
  password_hash text, -- argon2id; null: signs in with OpenID Connect only
  oidc_issuer text,
  oidc_subject text, -- the issuer's identifier of the account, which is never reassigned, unlike an e-mail address
  created_at timestamptz(3) not null default now(),
  check ((oidc_issuer is null) = (oidc_subject is null)), unique (oidc_issuer, oidc_subject)
);
create unique index account_email on account (lower(email));

create table membership (
  team_id uuid not null references stored_team on delete cascade, account_id uuid not null references account on delete cascade,
  role text not null check (role in ('owner', 'member', 'viewer')), created_at timestamptz(3) not null default now(),
  primary key (team_id, account_id)
);
create index membership_by_account on membership (account_id);

create table session (
  id uuid primary key, account_id uuid not null references account on delete cascade, digest bytea not null unique,
  created_at timestamptz(3) not null default now(),
  last_seen_at timestamptz(3) not null default now(), -- written every few minutes at most
  expires_at timestamptz(3) not null, -- extended with last_seen_at, up to a maximum
  user_agent text, address text
);
create index session_by_account on session (account_id);
create index session_expiry on session (expires_at);

create table invitation (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  role text not null check (role in ('owner', 'member', 'viewer')), digest bytea not null unique,
  email text, -- null: anyone with the link may accept it
  created_by uuid not null references account on delete cascade, created_at timestamptz(3) not null default now(),
  expires_at timestamptz(3) not null, used_at timestamptz(3),
  primary key (team_id, id)
);

-- Tokens of the links that create the first account. Each start prints one until there is an account.
create table setup_token (
  digest bytea primary key, created_at timestamptz(3) not null default now()
);

-- Changes of members, keys and settings. An entry outlives the accounts and objects that it names.
create table audit_entry (
  team_id uuid not null references stored_team on delete cascade, id uuid not null, at timestamptz(3) not null default now(),
  account_id uuid, -- null: the actor was no account
  actor text not null, -- the name at that time: an e-mail address, the leading part of an API key, the command line
  action text not null,
  subject text not null, -- the changed object, by its name at that time
  details json not null default '{}', -- never contains secrets
  primary key (team_id, id)
);

create function refuse_change_of_audit_entry() returns trigger language plpgsql as $$
begin
  -- The entries of a team are deleted with it.
  if tg_op = 'DELETE' and not exists (select from team where id = old.team_id) then
    return old;
  end if;
  raise exception 'The audit log is append-only';
end
$$;
create trigger audit_entry_append_only before update or delete on audit_entry
  for each row execute function refuse_change_of_audit_entry();

-- ---------- The server ----------
-- State that all servers of this database share: one row.
create table instance (
  singleton boolean primary key default true check (singleton), cursor_secret bytea not null,
  secret_key_digest text, -- hexadecimal; identifies SECRET_KEY without revealing it, and is replaced when the key is rotated
  -- While no server could reach the database, runners and CI jobs could not report, so that time does not count against them.
  serving_at timestamptz(3), -- when a server last recorded that it reaches the database
  serving_since timestamptz(3), -- since when servers have reached it without interruption
  -- A server that was restored from a backup is quiet until `assay admin resume`: nothing is sent, no schedule and no automation
  -- runs, runners get no tasks, and nothing is deleted for its age.
  quiet_since timestamptz(3), -- null: not quiet
  restored_to timestamptz(3), -- when the backup was taken that was restored last; null: none was
  backed_up_at timestamptz(3) -- when `assay backup` last took a backup; null: it never has
);

-- Deletions for age that are larger than a day's worth, because a setting or the clock has changed or no server ran. Administrators can
-- stop them until they begin (src/rules/retention.ts).
create table planned_deletion (
  project_id uuid not null references stored_project (id) on delete cascade,
  kind text not null check (kind in ('results', 'attachments', 'executions')),
  days int not null, -- the retention that it was announced for
  objects bigint not null, -- test runs with results, attachments or executions, when it was announced
  before timestamptz(3) not null, -- all of these are older
  begins_at timestamptz(3), -- null: an administrator has decided to keep them
  primary key (project_id, kind)
);

-- The retention of each server that runs. The longest one applies, so that servers whose settings differ delete the same data.
create table server_retention (
  server_id uuid primary key, host text not null,
  results_days int not null, attachments_days int not null, executions_days int not null, -- 0: forever
  seen_at timestamptz(3) not null default now() -- a server that was not seen for some minutes does not run
);

-- The answers to POST requests with an Idempotency-Key, kept for a day.
create table idempotency (
  team_id uuid not null references stored_team on delete cascade,
  scope_id uuid not null, -- the project or team of the API key, so that a new key can repeat a request of the previous one
  key text not null,
  digest bytea not null, -- SHA-256 of the request
  claim uuid, -- the request that is running
  claimed_until timestamptz(3), -- extended while it runs; after this time it is considered dead
  acting boolean not null default false, -- it has begun side effects that cannot be undone
  status smallint not null, content_type text, body text, created_at timestamptz(3) not null default now(),
  primary key (team_id, scope_id, key)
);
create index idempotency_age on idempotency (created_at);

-- Items that a background loop failed to process, and when it retries them. They are a separate table, so that the retry of an item
-- whose row cannot be written is delayed as well.
create table retry_backoff (
  loop text not null,
  item text not null, -- an id or another name that is unique in the loop
  tries smallint not null, -- consecutive failures
  stalls smallint not null, -- consecutive time-outs of the database, which are not failures of the item
  due_at timestamptz(3) not null,
  primary key (loop, item)
);

-- ---------- Executions ----------
-- Returns whether two hashes name one commit: a short hash is the beginning of a long one. The cheapest comparisons come first,
-- because most hashes are equal or begin differently.
create function is_same_commit(a text, b text) returns boolean language sql immutable parallel safe as $$
  select lower(a) = lower(b)
    or (starts_with(lower(a), lower(b)) or starts_with(lower(b), lower(a)))
      and a ~ '^[0-9a-fA-F]{7,64}$' and b ~ '^[0-9a-fA-F]{7,64}$'
$$;

-- Who made a commit and why, as uploads state it. Executions name it by its hash, or the beginning of it.
create table commit (
  project_id uuid not null references stored_project (id) on delete cascade,
  hash text collate "C" not null, -- in full, in lower case
  parent text collate "C", -- the first one; null: there is none, or the clone does not have it
  author text not null, subject text not null, committed_at timestamptz(0) not null,
  seen_at timestamptz(3) not null default now(),
  primary key (project_id, hash)
);
create index commit_by_age on commit (seen_at);

-- One sequence for all projects, because an upload must not wait for another one. The numbers of a project ascend with gaps.
create sequence execution_number;

-- One build of one or more tasks.
create table execution (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null,
  number bigint not null default nextval('execution_number'),
  key text, -- the client's name of the build, so that parallel jobs report to one execution
  status text not null check (status in ('queued', 'running', 'passed', 'failed', 'cancelled', 'timed_out')),
  mode text not null default 'report', trigger text not null, branch text, commit text, pull_request text,
  queue_ref text, -- the ref that a merge queue has made for the build; branch is null then (src/rules/branch.ts)
  base_branch text, -- the branch that the pull request or the merge queue merges into; null: unknown
  build_url text, environment text,
  sample boolean not null default false, -- sample data of the introduction
  untrusted boolean not null default false, -- of a fork: its results are shown and counted nowhere (src/rules/untrusted.ts)
  probe boolean not null default false, -- runs one test case at one commit (table probe); then untrusted as well
  depth smallint not null default 0, -- the number of automations that led to it
  baseline_id uuid, -- fixed at the beginning, so that a comparison does not change later; no foreign key: it may be deleted before
  rerun_of uuid, -- the execution that it repeats
  build_id uuid, -- of a rerun: the execution that was repeated first; null: it is a build itself
  reruns smallint not null default 0, -- the length of the chain of reruns before it
  failed_only boolean not null default false, -- a rerun of the test cases that failed
  -- The status of a build with the results of its reruns. null: the same as status.
  repeated_status text check (repeated_status in ('passed', 'failed', 'timed_out')),
  fail_fast int, -- the number of failures outside of quarantine after which tasks that have not begun are cancelled
  variables bytea, -- a sealed JSON object of texts, which a rerun takes over
  timeout_minutes int not null,
  watched_until timestamptz(3), -- someone is watching it live: runners report more often
  expires_at timestamptz(3), -- extended with every report; null once complete
  created_at timestamptz(3) not null, started_at timestamptz(3), completed_at timestamptz(3),
  primary key (project_id, id)
);

-- The key names an execution together with commit and branch, because build numbers repeat between branches and jobs.
create index execution_by_key on execution (project_id, key, id desc) where key is not null;
create index execution_newest on execution (project_id, id desc) where not probe;
create index execution_by_status on execution (project_id, status, id desc);
create index execution_by_branch on execution (project_id, branch, id desc);
create index execution_by_pull_request on execution (project_id, pull_request, id desc) where pull_request is not null;
create index execution_by_environment on execution (project_id, environment, id desc) where environment is not null;
-- text_pattern_ops finds the long hashes that begin with a short one in any collation.
create index execution_by_commit on execution (project_id, lower(commit) text_pattern_ops, id desc) where commit is not null;
create index execution_by_build on execution (project_id, build_id, id) where build_id is not null;
create index execution_baseline on execution (project_id, branch, id desc) where status in ('passed', 'failed') and not sample;
create index execution_by_day on execution (project_id, branch, completed_at) where completed_at is not null;
create index execution_expiry on execution (expires_at) where expires_at is not null;
create index execution_sample on execution (project_id) where sample;
-- Bytes 2 to 5 identify the key that sealed the value.
create index execution_variable_key on execution (substring(variables from 2 for 4)) where variables is not null;

-- The figures of a branch on a day that is over. They are counted when someone asks for them, and discarded when something
-- of that day changes (src/store/past_days.ts).
create table branch_day (
  project_id uuid not null,
  day date not null, -- in UTC, of the completion of the executions
  branch text not null, -- the default branch includes executions that name no branch
  sample boolean not null, executions int not null, passed int not null,
  flaky int not null default 0, -- executions in which a test failed that is flaky, or before it passed
  p50_ms bigint, -- null: without any run
  p95_ms bigint,
  first_ended_at timestamptz(3), last_ended_at timestamptz(3), last_passed boolean, -- null: no execution ended on the day
  red_ms bigint not null default 0, -- from each execution that did not pass to the next one of the day
  primary key (project_id, day, branch, sample), foreign key (project_id) references stored_project (id) on delete cascade
);

-- Tasks whose last run on a branch was red, so that the next green one is reported as fixed.
create table red_task (
  project_id uuid not null references stored_project (id) on delete cascade,
  branch text not null, -- the default branch where an execution names none
  task_slug text not null, -- '': an execution that ended without any task
  since timestamptz(3) not null default now(),
  primary key (project_id, branch, task_slug)
);
create index red_task_age on red_task (since);

-- The red tasks that an action of an automation has sent a message about: it sends none before they were green.
create table red_task_message (
  project_id uuid not null references stored_project (id) on delete cascade, branch text not null,
  task_slug text not null, since timestamptz(3) not null, -- as in red_task
  team_id uuid not null, automation_id uuid not null,
  action smallint not null, -- its index
  primary key (project_id, branch, task_slug, since, automation_id, action)
);
create index red_task_message_by_automation on red_task_message (team_id, automation_id);

-- ---------- Test runs ----------
-- Returns a run as the list of the API has it. to_json and to_char are not immutable in general, but they depend on no setting in
-- this form. In SQL the function would be planned anew for every row, because it cannot be inlined.
create function test_run_element(
  execution_id uuid, task_slug text, completed_at timestamptz, passed int, failed int, skipped int
) returns text language plpgsql immutable parallel safe as $$
begin
  return '{"executionId":"' || execution_id || '","taskSlug":' || to_json(task_slug)
    || ',"completedAt":"' || to_char(completed_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
    || '","passed":' || passed || ',"failed":' || failed || ',"skipped":' || skipped
    || ',"total":' || passed + failed + skipped || '}';
end $$;

-- One task of an execution with its results. A declared task has a row before its results arrive.
create table test_run (
  project_id uuid not null, id uuid not null, execution_id uuid not null, task_slug text not null,
  -- incomplete: the execution ended while announced shards were missing
  status text not null check (status in ('queued', 'running', 'passed', 'failed', 'cancelled', 'timed_out', 'incomplete')),
  reason text, -- why it ended without a report
  declared boolean not null default false,
  untrusted boolean not null default false, -- as in its execution: lists of runs are read without executions
  shards smallint not null default 1, -- as announced by the uploads
  attempt smallint not null default 0, -- 0: no report has arrived
  passed int not null default 0, failed int not null default 0, skipped int not null default 0, flaky int not null default 0,
  quarantined int not null default 0, -- failed cases that the verdict does not count
  shadowed int not null default 0, -- failed ones that failed only through a case that they contain, or are further rows of a failed case
  -- Of a rerun: the results of its build with its own put over them, test by test (src/rules/rerun_results.ts). null: no rerun.
  build_passed int, build_failed int, build_skipped int,
  not_rerun int[] not null default '{}', -- test cases that failed in the build and have no result in this rerun
  absence json, -- tests of the baseline that did not run (src/rules/absent_tests.ts); null: none
  forgiven int not null default 0, -- failures that the gates of its uploads have forgiven
  infrastructure int not null default 0, -- failures that matched an infrastructure rule
  disturbed real not null default 0, -- how far its failures are put down to its surroundings, 0 to 1
  outage boolean not null default false, -- nearly everything failed, which says nothing about the test cases
  was_outage boolean not null default false, -- an attempt was an outage, so a case that passes on retry is not flaky
  verdict text check (verdict in ('passed', 'failed')), -- of the reports that have arrived
  duration_ms bigint not null default 0, -- wall time
  machine_ms bigint not null default 0, -- all attempts together
  slower json, -- usualMs and longestMs of a passed run that took longer than usual; null: it did not
  format text, exit_code int, warnings text[] not null default '{}',
  health_applied boolean, -- false: complete, but case_health does not include its results yet; null: not complete
  tests_started_at timestamptz(3), -- when the tests of its first attempts began; null: unknown
  started_at timestamptz(3),
  completed_at timestamptz(3), -- null until all announced shards have reported; a further attempt changes it
  -- The list is the most frequent request, so its elements are rendered once per write instead of once per read.
  element text generated always as
    (test_run_element(execution_id, task_slug, completed_at, passed, failed, skipped)) stored,
  primary key (project_id, id), unique (project_id, execution_id, task_slug),
  foreign key (project_id, execution_id) references execution on delete cascade
);
create index test_run_page on test_run (project_id, completed_at desc, id desc) where not untrusted;
-- An expression instead of the column, so that PostgreSQL does not use this index to find the run of a task in an execution.
create index test_run_by_task on test_run (project_id, (task_slug || ''), completed_at desc, id desc) where not untrusted;
-- Runs are counted in the order of completion, which need not be that of arrival.
create index test_run_pending_health on test_run (project_id, completed_at, id) where not health_applied;
create index test_run_forgiven on test_run (project_id, completed_at) where forgiven > 0;

-- One upload to a run: the n-th attempt of one shard.
create table attempt (
  project_id uuid not null, run_id uuid not null, shard smallint not null, number smallint not null,
  digest bytea not null, -- SHA-256 of the upload: a repeated upload changes nothing
  format text not null,
  tool text, -- the tool that wrote the report, if its own format would keep retries
  partial boolean not null, -- the report is truncated
  exit_code int,
  exit_case int, -- the test case that represents a non-zero exit code without a failed case
  passed int not null default 0, -- counts that were declared without their cases, or further rows of cases
  failed int not null default 0, skipped int not null default 0,
  failed_cases int not null default 0, -- failed test cases of the report, listed or counted
  gate json, -- the decision of the gate that the upload asked for; null: it asked for none
  warnings text[] not null,
  duration_ms bigint not null default 0, -- of the report
  host text, -- the name of the machine; null: unknown, as are the next two
  system text, -- operating system and architecture, such as "linux x64"
  image text, -- of the machine or container
  -- What files took beyond their test cases, for imports and hooks: one case of each file, and milliseconds; null: not reported
  overhead_cases int[], overheads int[],
  started_at timestamptz(3), -- when its tests began, as far as a clock can be trusted; null: unknown
  received_at timestamptz(3) not null,
  primary key (project_id, run_id, shard, number), foreign key (project_id, run_id) references test_run on delete cascade
);

-- Uploads of the last day that were refused, or accepted with warnings.
create table upload_log (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null, -- its time is that of the answer
  outcome text not null check (outcome in ('refused', 'warned')), status_code smallint not null,
  message text, -- null: accepted
  warnings json not null,
  parameters json not null, -- as sent
  bytes bigint, -- as sent; null: the body was not read and its length is unknown
  user_agent text, client_address text not null, key_leading text not null, request_id text not null,
  execution_id uuid, -- of an accepted upload; no foreign key: it may have been deleted
  task_slug text,
  times int not null default 1, -- consecutive requests beyond the rate limit are one row
  last_answered_at timestamptz(3) not null, answered_at timestamptz(3) not null,
  primary key (project_id, id)
);
create index upload_log_age on upload_log (id);

-- ---------- Test cases ----------
-- A result refers to its test case by number. There is no foreign key to the project, because 100,000 new cases would look it up
-- 100,000 times.
create table test_case (
  project_id uuid not null,
  number int not null, -- from 1, in the order in which cases were first seen
  id uuid not null, -- ends in its number, so that it needs no index
  identity uuid not null unique, -- the first 128 bits of the SHA-256 of project, task, suite, name, file and occurrence
  task_slug text not null, suite text not null, name text not null, file text,
  owner text, -- set by people; it precedes owner_list
  owner_list uuid, -- owners by the ownership file; null: none
  sample boolean not null default false, -- sample data of the introduction
  first_seen_at timestamptz(3) not null,
  primary key (project_id, number)
);

-- The suite comes first, because the cases of a suite arrive together. Hashes, because a text may exceed the size of an index entry.
create index test_case_by_name on test_case (project_id, hashtext(suite), hashtext(name));
create index test_case_by_owner on test_case (project_id, owner, number) where owner is not null;
create index test_case_by_owner_list on test_case (project_id, owner_list, number) where owner_list is not null;

-- The earlier identities of test cases whose file has moved. Branches without the move still report them.
create table test_case_alias (
  project_id uuid not null,
  identity uuid primary key, -- as in test_case, which has the newest one
  number int not null, -- test_case.number
  foreign key (project_id, number) references test_case on delete cascade
);
create index test_case_alias_by_case on test_case_alias (project_id, number);

-- The ownership file, such as CODEOWNERS, of the project's repository.
create table owners_file (
  project_id uuid primary key references stored_project (id) on delete cascade, content text not null,
  digest text not null, -- SHA-256 of content and syntax, hexadecimal
  syntax text not null check (syntax in ('github', 'gitlab')),
  path text, -- in the repository; null: unknown
  branch text, -- as the client says; null: unknown
  commit text, stored_at timestamptz(3) not null default now()
);

-- The distinct lists of owners that the rules of the file give to test cases of the project.
create table owner_list (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null, -- the first 128 bits of the SHA-256 of the names, so that equal lists have equal ids
  names text[] not null,
  primary key (project_id, id)
);

create table quarantine (
  project_id uuid not null references stored_project (id) on delete cascade, test_case int not null, reason text not null,
  automation text, -- the name of the automation that quarantined the test case; null: a person or an API key did
  until timestamptz(3), -- null: until someone ends it
  skip boolean not null default false, -- jobs leave the test case out
  created_at timestamptz(3) not null default now(),
  primary key (project_id, test_case), check (until is not null or not skip)
);

-- The record of a test case by its results in complete runs (src/rules/health.ts). A result is counted if it passed or failed in a
-- run that was no outage.
create table case_health (
  project_id uuid not null references stored_project (id) on delete cascade, test_case int not null,
  runs int not null default 0, -- counted results
  failures int not null default 0, -- of runs
  clean int not null default 0, -- consecutive passes since the last failure, also before a retry
  main_runs int not null default 0, -- counted results on the default branch
  failing int not null default 0, -- consecutive failures there
  broken boolean not null default false, -- a change explains the last of these, or what it is based on
  flaky boolean not null default false, -- as last announced (src/rules/flakiness.ts)
  flake_failures int not null default 0, -- of the last 200 counted results: those that failed by themselves
  flake_rate real not null default 0, -- the share of flake_failures
  flaky_at timestamptz(3), -- the last of flake_failures
  flaky_since timestamptz(3),
  flaky_signs text not null default '', -- of flake_failures: r passed on retry, c passed again on the same commit, u neither
  recovers_after int not null default 0, -- consecutive passes after which it is not flaky any more
  timed int not null default 0, -- results with a duration
  total_ms bigint not null default 0, -- of timed
  recent_ms int[] not null default '{}', -- the last 20 durations
  p95_ms int, last_status text, last_run_id uuid, last_run_at timestamptz(3),
  -- Indexed in place of last_run_at, which each run changes: an update that changes no indexed column is several times cheaper.
  last_run_day date generated always as ((last_run_at at time zone 'UTC')::date) stored,
  last_passed_at timestamptz(3), -- completion of the newest run in which it passed
  last_failed_at timestamptz(3), -- completion of the newest run in which it failed, including before a retry that passed
  -- A test case is removed once its task does not report it any more. A branch that began before still runs it, so it stays removed
  -- until the default branch has it again.
  removed_run_id uuid, -- the last run that had it, when it was found to be removed
  removed_main_runs int, -- main_runs at that time: it is removed while main_runs is the same
  primary key (project_id, test_case)
) with (fillfactor = 50); -- a run may change all rows of a page in one transaction
create index case_health_by_flake_rate on case_health (project_id, flake_rate, test_case) where flake_rate > 0;
create index case_health_by_failures on case_health (project_id, failures, test_case) where failures > 0;
create index case_health_by_p95 on case_health (project_id, p95_ms, test_case) where p95_ms is not null;
create index case_health_by_last_run on case_health (project_id, last_run_day, test_case) where last_run_day is not null;
create index case_health_flaky on case_health (project_id, flake_rate, test_case) where flaky;
create index case_health_broken on case_health (project_id, test_case) where broken;

-- How long a test case usually takes. A case without a row has not taken 200 ms or more on the default branch (src/rules/slower.ts).
create table case_duration (
  project_id uuid not null references stored_project (id) on delete cascade, test_case int not null,
  passed_ms int[] not null, -- the last 100 passes on the default branch, newest last, without the slowness of their runs
  usual_ms int, -- the median; null: fewer than 10
  primary key (project_id, test_case)
) with (fillfactor = 50);

create table task_duration (
  project_id uuid not null references stored_project (id) on delete cascade, task_slug text not null,
  passed_ms bigint[] not null, -- wall time of the last 100 passed runs on the default branch, newest last
  usual_ms bigint, -- the median; null: fewer than 10
  primary key (project_id, task_slug)
);

-- ---------- Results ----------
-- The results of a run, packed: a row has those of up to 128 neighbouring test cases, so that ten million results are cheap, and can be
-- read by run and, through the block, by test case. Partitions by the month of the run, which its id contains: dropping a month
-- returns its disk space at once (src/database/partitions.ts).
create table case_result (
  project_id uuid not null, run_id uuid not null,
  block int not null, -- test_case.number / 128
  test_cases int[] not null, -- ascending
  statuses text not null, -- a letter per case: p passed, f failed, c failed through a case that it contains, s skipped; capital: it had failed before in this run
  attempts smallint[], -- the attempt that each result is from; null: all from the first
  durations int[] not null, -- milliseconds; null: unknown
  primary key (project_id, run_id, block), foreign key (project_id, run_id) references test_run on delete cascade
) partition by range (run_id);
create index case_result_history on case_result (project_id, block, run_id desc);
create table case_result_default partition of case_result default;

-- The details of a result. A result without any has no row. Partitioned like case_result.
create table case_detail (
  project_id uuid not null, run_id uuid not null, test_case int not null, attempt smallint not null,
  shard smallint, -- the shard that the result is from; null: the run is not sharded
  kind text, line int,
  runs int not null default 1, -- how often the case ran for this result
  cause uuid, -- the fingerprint of the message (src/rules/fingerprint.ts), by which failures of an execution are grouped
  message text, stack text, output text, properties json,
  primary key (project_id, run_id, test_case, attempt), foreign key (project_id, run_id) references test_run on delete cascade
) partition by range (run_id);
create table case_detail_default partition of case_detail default;

-- The failed results of a run with their explanation when they arrived (src/rules/odds.ts). Outages have none, because they
-- blame nobody.
create table failure (
  project_id uuid not null, run_id uuid not null, test_case int not null,
  cause uuid, -- as in case_detail; null: the report says nothing
  -- new: the change; flaky: the test itself; main: the default branch fails as well by now; still: the baseline failed;
  -- incident: the surroundings, or an infrastructure rule; unclear: flaky, main or still, but the share of the change is above the
  -- project's gate_share, or flaky where only changes are known to have failed alike
  blame text not null check (blame in ('new', 'unclear', 'flaky', 'main', 'still', 'quarantined', 'incident')),
  explained text not null check (explained in ('change', 'flaky', 'inherited', 'outside')), -- the strongest explanation
  of_many boolean not null, -- the change broke many tests of the run, which says nothing of one of them
  change real not null, flaky real not null, inherited real not null, outside real not null, -- the share of each, 0 to 1
  passed_again boolean not null default false, -- a later run of the task passed it on the same commit
  evidence json not null, -- what the shares rest on
  flake_rate real, -- the share of results elsewhere that failed, where that explains it
  flaky_at timestamptz(3), -- the last of them
  -- The infrastructure rule that the failure matched, with its name and address at that time, because the rule may be deleted.
  rule_id uuid, rule_name text, rule_url text,
  primary key (project_id, run_id, test_case), foreign key (project_id, run_id) references test_run on delete cascade
);
create index failure_by_test_case on failure (project_id, test_case, run_id desc);

-- Results that passed after a failed attempt, for no reason outside of the tests.
create table flake (
  project_id uuid not null, run_id uuid not null, test_case int not null, cause uuid,
  primary key (project_id, run_id, test_case), foreign key (project_id, run_id) references test_run on delete cascade
);
create index flake_by_test_case on flake (project_id, test_case, run_id desc);

-- Passed results that took longer than usual when they arrived.
create table slower_result (
  project_id uuid not null, run_id uuid not null, test_case int not null, duration_ms int not null,
  usual_ms int not null, -- the median
  longest_ms int not null,
  primary key (project_id, run_id, test_case), foreign key (project_id, run_id) references test_run on delete cascade
);

-- Texts that a team knows to be no fault of a test: a failure that contains one blames nobody (src/rules/infrastructure.ts).
create table infrastructure_rule (
  team_id uuid not null references stored_team (id) on delete cascade, id uuid not null,
  name text not null, pattern text not null,
  url text, -- documentation; null: none
  created_at timestamptz(3) not null default now(), updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

-- ---------- Attachments ----------
-- The contents of files, which are stored outside of the database, once per project. The column of the project is not named
-- project_id, because deleting a project removes all rows with that column, and these must stay until the content is removed.
create table attachment_content (
  owner_id uuid not null, sha256 bytea not null, bytes bigint not null,
  is_stored boolean not null default false, -- false: not stored yet, or removed
  claimed_at timestamptz(3) not null default now(), -- when an upload last relied on it, so that it is not removed soon after
  primary key (owner_id, sha256)
);

-- Files of a run. Results refer to a file by its path.
create table attachment (
  project_id uuid not null, id uuid not null, run_id uuid not null,
  shard smallint not null, -- of the upload that refers to it, as in attempt
  attempt smallint not null, -- 0: it arrived before any report
  path text not null, name text not null, sha256 bytea not null, bytes bigint not null,
  media_type text not null, -- by its content; that of the report is not trusted
  preview text, -- the end of a text
  created_at timestamptz(3) not null default now(),
  primary key (project_id, id), unique (project_id, run_id, path, shard, attempt, sha256),
  foreign key (project_id, run_id) references test_run on delete cascade
);
create index attachment_page on attachment (project_id, run_id, id) include (bytes);
create index attachment_by_content on attachment (project_id, sha256);

-- The files that the results of a report name, whether they are stored or not.
create table attachment_reference (
  project_id uuid not null, run_id uuid not null, test_case int not null, shard smallint not null, attempt smallint not null,
  position smallint not null, -- in the order of the report
  path text not null, name text not null,
  is_kept boolean not null, -- false: the file is not stored, because the case passed
  primary key (project_id, run_id, test_case, shard, attempt, position),
  foreign key (project_id, run_id) references test_run on delete cascade
);
create index attachment_reference_path on attachment_reference (project_id, run_id, path);

-- Content that may have no attachment: it is new, or one of its attachments was deleted. It has no unique key, so that transactions that
-- delete attachments with the same content do not wait for each other.
create table attachment_loose_content (
  owner_id uuid not null, sha256 bytea not null, since timestamptz(3) not null default now()
);
create index attachment_loose_content_since on attachment_loose_content (since);
create index attachment_loose_content_key on attachment_loose_content (owner_id, sha256);

-- A trigger, because attachments are also deleted with their runs.
create function queue_loose_content() returns trigger language plpgsql as $$
begin
  insert into attachment_loose_content (owner_id, sha256) select distinct project_id, sha256 from deleted;
  return null;
end $$;
create trigger attachment_deleted after delete on attachment
  referencing old table as deleted for each statement execute function queue_loose_content();

-- ---------- Bug reports ----------
create table bug_report (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null,
  number int not null, -- from 1, without gaps
  title text not null, description text not null default '',
  status text not null check (status in ('open', 'in_progress', 'resolved', 'ignored')),
  severity text not null check (severity in ('critical', 'major', 'minor', 'trivial')),
  source text not null check (source in ('automatic', 'manual')), assignee text,
  labels text[] not null default '{}', external_url text,
  sample boolean not null default false, -- sample data of the introduction
  regressed boolean not null default false, fixed_in_commit text, merged_into uuid, occurrences int not null default 0,
  impact int not null default 0, -- executions of the last 14 days in which it occurred, while it is open
  impact_due_at timestamptz(3) default now(), -- when impact is counted next (src/store/bug_evidence.ts); null: it stays the same
  -- There are no foreign keys to executions, because the bug outlives them.
  first_execution_id uuid, last_execution_id uuid,
  branch text, -- of the last occurrence, as is the commit
  commit text,
  home_execution_id uuid, -- of the last occurrence on the default branch, as are the next two; events have these
  home_branch text, home_commit text,
  first_seen_at timestamptz(3), last_seen_at timestamptz(3), created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null, resolved_at timestamptz(3),
  primary key (project_id, id), unique (project_id, number)
);

-- A list of several statuses merges the first bugs of each, so all orders start with the status.
create index bug_report_by_status on bug_report (project_id, status, number desc);
create index bug_report_by_occurrences on bug_report (project_id, status, occurrences desc, number desc) where merged_into is null;
create index bug_report_by_last_seen
  on bug_report (project_id, status, coalesce(last_seen_at, '-infinity') desc, number desc) where merged_into is null;
create index bug_report_by_severity
  on bug_report (project_id, status,
    array_position(array['trivial', 'minor', 'major', 'critical'], severity) desc, number desc)
  where merged_into is null;
create index bug_report_by_impact on bug_report (project_id, status, impact desc, number desc) where merged_into is null;
-- The numbers of open bugs are counted in the index.
create index bug_report_live on bug_report (project_id, severity, regressed)
  where status in ('open', 'in_progress') and merged_into is null;
create index bug_report_impact_due on bug_report (impact_due_at) where impact_due_at is not null;

-- Failures with one of these fingerprints belong to the bug. The other columns are what the fingerprint was computed from.
create table bug_fingerprint (
  project_id uuid not null, digest uuid not null, bug_report_id uuid not null, kind text not null default 'message'
    check (kind in ('message', 'case', 'flaky', 'outage', 'automation', 'infrastructure')),
  version smallint not null, exception_type text,
  message text not null, -- normalised
  frames text[] not null, test text, created_at timestamptz(3) not null,
  primary key (project_id, digest), foreign key (project_id, bug_report_id) references bug_report on delete cascade
);
create index bug_fingerprint_by_bug on bug_fingerprint (project_id, bug_report_id);

-- The test cases of a bug.
create table bug_case (
  project_id uuid not null, bug_report_id uuid not null, test_case int not null,
  clean int not null default 0, -- consecutive runs on the default branch in which it passed
  primary key (project_id, bug_report_id, test_case),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade
);
create index bug_case_by_case on bug_case (project_id, test_case);

create table bug_occurrence (
  project_id uuid not null, bug_report_id uuid not null, run_id uuid not null, test_case int not null,
  message text, seen_at timestamptz(3) not null,
  primary key (project_id, bug_report_id, run_id, test_case),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade,
  foreign key (project_id, run_id) references test_run on delete cascade
);
create index bug_occurrence_by_run on bug_occurrence (project_id, run_id);

-- Every change of a bug's status, with its cause.
create table bug_change (
  project_id uuid not null, bug_report_id uuid not null, id uuid not null, from_status text, to_status text not null,
  cause text not null check (cause in ('opened', 'api', 'regression', 'clean_runs', 'merge', 'removed')),
  changed_at timestamptz(3) not null,
  primary key (project_id, bug_report_id, id), foreign key (project_id, bug_report_id) references bug_report on delete cascade
);

-- ---------- Runners ----------
create table runner (
  project_id uuid not null references stored_project (id) on delete cascade, name text not null,
  version text, -- of Assay; null: it has not sent one
  labels text[] not null,
  task_slugs text[], -- null: all
  probe_slugs text[] not null default '{}', -- tasks that it can run for one test case at any commit
  free smallint not null, held smallint not null,
  failures smallint not null default 0, -- consecutive infrastructure failures that no other runner had with the same task
  paused_at timestamptz(3), -- it gets no new tasks
  paused_until timestamptz(3), -- null: until someone resumes it
  pause_reason text, seen_at timestamptz(3) not null,
  stopped boolean not null default false, -- its last request said that it ends
  registered_at timestamptz(3), -- when a process got a key for it; null: it uses another key
  primary key (project_id, name)
);

-- The assignment of a task, or of a shard of it, to one runner. A task whose lease was lost is assigned again with another lease.
create table lease (
  project_id uuid not null, id uuid not null, execution_id uuid not null, run_id uuid not null, task_slug text not null,
  shard smallint not null, -- 0: the whole task
  shards smallint not null,
  labels text[] not null default '{}', -- which a runner must have
  avoid text[] not null default '{}', -- the runners that could not run it, one entry for each time
  priority smallint not null default 0, -- -100 to 100: the highest is offered first
  concurrency_group text, -- of the project's tasks of a group, one runs at a time
  probe boolean not null default false,
  attempt smallint not null default 1, -- 2: the previous one was lost
  -- offered: assigned, and not yet acknowledged by the runner; returned: its runner gave it back; infrastructure: its runner could not
  -- run it
  status text not null check (status in (
    'queued', 'offered', 'running', 'reported', 'failed', 'cancelled', 'lost', 'returned', 'infrastructure', 'timed_out')),
  stop_reason text, -- the runner must stop it
  stop_sent boolean not null default false, -- an answer to the runner contained the reason
  overtime boolean not null default false, -- it is stopped for its timeout, which counts as a failure
  runner text, timeout_seconds int not null,
  log_bytes bigint not null default 0, -- including parts that are not kept
  exit_code int, message text,
  queued_at timestamptz(3) not null, -- the order of the queue; a task that is assigned again keeps it
  offered_at timestamptz(3), started_at timestamptz(3),
  expires_at timestamptz(3), -- offered or running: when it is considered lost
  ended_at timestamptz(3),
  primary key (project_id, id), foreign key (project_id, run_id) references test_run on delete cascade
);
create index lease_queue on lease (project_id, queued_at, id) where status = 'queued';
create index lease_expiry on lease (expires_at) where status in ('offered', 'running');
create index lease_by_run on lease (project_id, run_id, id);
create index lease_open on lease (project_id, execution_id) where status in ('queued', 'offered', 'running');
create index lease_concurrency_group on lease (project_id, concurrency_group)
  where concurrency_group is not null and status in ('queued', 'offered', 'running');
-- For the metrics of the server.
create index lease_ended on lease (ended_at) where ended_at is not null;

-- The output of a lease: the last mebibyte, in the parts in which it arrived.
create table lease_log (
  project_id uuid not null, lease_id uuid not null,
  start bigint not null, -- byte offset
  bytes bytea not null, -- whole characters of UTF-8
  xact xid8 not null, -- as in event, ascending within a log
  primary key (project_id, lease_id, start), foreign key (project_id, lease_id) references lease on delete cascade
);
create index lease_log_by_xact on lease_log (project_id, lease_id, xact, start);

-- The assignment of a task's files to shards. It is decided once, so that a retried shard gets the same files.
create table shard_plan (
  project_id uuid not null, execution_id uuid not null, task_slug text not null, shards smallint not null,
  runs smallint not null, -- the number of runs that the durations are from; 0: nothing is known of the task
  files text[] not null, -- the three arrays are parallel
  durations int[] not null, -- milliseconds
  file_shards smallint[] not null, -- the shard of each file, from 1
  given text[], -- the files that the first job has named; null: it has named none
  created_at timestamptz(3) not null default now(),
  primary key (project_id, execution_id, task_slug, shards),
  foreign key (project_id, execution_id) references execution on delete cascade
);

-- The files of a task that is split while it runs: a shard takes the next batch when it has run the previous one.
create table file_queue (
  project_id uuid not null, execution_id uuid not null, task_slug text not null, shards smallint not null,
  runs smallint not null, -- the number of runs that the durations are from; 0: nothing is known of the task
  files text[] not null, -- longest first; the four arrays are parallel
  durations int[] not null, -- milliseconds
  file_shards smallint[] not null, -- the shard that has the file; 0: it waits
  file_batches smallint[] not null, -- the batch of its shard that it is in, from 1; 0: it waits
  holders text[] not null, -- by shard: the lease or CI job that takes batches; '': none yet
  acknowledged smallint[] not null, -- by shard: the last batch that has been run
  created_at timestamptz(3) not null default now(),
  primary key (project_id, execution_id, task_slug, shards),
  foreign key (project_id, execution_id) references execution on delete cascade
);

-- The environments of a team and their variables.
create table environment (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  slug text not null, name text not null, base_url text, description text,
  created_at timestamptz(3) not null default now(), updated_at timestamptz(3) not null default now(),
  primary key (team_id, id), unique (team_id, slug)
);

create table variable (
  team_id uuid not null, environment_id uuid not null, name text not null,
  secret boolean not null, -- write-only: only leases contain its value
  sealed bytea not null, -- AES-256-GCM, bound to team, environment and name (src/secrets/seal.ts)
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, environment_id, name), foreign key (team_id, environment_id) references environment on delete cascade
);


-- ---------- Events, automations and integrations ----------
create table event (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  project_id uuid references stored_project (id) on delete cascade, -- null: it concerns the team
  execution_id uuid, -- that the event is about; null: it is about none, or about several
  type text not null,
  depth smallint not null default 0, -- the number of automations that led to it
  data json not null, -- the state at that time
  -- Ids of several servers are committed out of order. Once no transaction with a smaller number is running, no row can come before
  -- this one any more, so streams can send it (src/store/live.ts).
  xact xid8 not null default pg_current_xact_id(), occurred_at timestamptz(3) not null default now(),
  due_at timestamptz(3), -- when automations process it; null: they have, or none waits for it
  tries smallint not null default 0,
  primary key (team_id, id)
);
create index event_due on event (due_at) where due_at is not null;
create index event_by_type on event (team_id, type, id desc);
create index event_by_xact on event (project_id, xact, id);
create index event_by_execution on event (project_id, execution_id, xact, id) where execution_id is not null;
create index event_age on event using brin (occurred_at) with (pages_per_range = 32);

create table automation (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  name text not null, enabled boolean not null default true, trigger json not null, conditions json not null,
  actions json not null,
  event text, -- the event of the trigger; null: a schedule
  next_run_at timestamptz(3), -- of an enabled schedule
  created_at timestamptz(3) not null default now(), updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);
create index automation_by_event on automation (team_id, event) where enabled;
create index automation_due on automation (next_run_at) where next_run_at is not null;

create table automation_run (
  team_id uuid not null, automation_id uuid not null, id uuid not null,
  cause text not null check (cause in ('event', 'schedule', 'manual')), event_id uuid, event_type text, project_id uuid,
  status text not null check (status in ('done', 'skipped', 'failed')), reason text not null,
  actions json not null, -- with the outcome of each
  created_at timestamptz(3) not null default now(),
  primary key (team_id, automation_id, id), foreign key (team_id, automation_id) references automation on delete cascade
);
create unique index automation_run_once on automation_run (team_id, automation_id, event_id) where cause = 'event';
create index automation_run_by_status on automation_run (team_id, automation_id, status, id desc);
create index automation_run_by_project on automation_run (project_id) where project_id is not null;
create index automation_run_age on automation_run (created_at);

-- A receiver of notifications outside of Assay.
create table integration (
  team_id uuid not null references stored_team on delete cascade, id uuid not null,
  kind text not null, name text not null, enabled boolean not null default true, disabled_reason text,
  config json not null, -- without secrets
  sealed bytea not null, -- the secrets: a JSON object, bound to team and integration (src/secrets/seal.ts)
  failures int not null default 0, -- consecutive
  failing_since timestamptz(3),
  paused_until timestamptz(3), -- nothing is sent before
  claim uuid, -- of the server that is sending
  claimed_until timestamptz(3),
  created_at timestamptz(3) not null default now(), updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

create table delivery (
  team_id uuid not null, integration_id uuid not null,
  id uuid not null, -- the receiver gets it with every try
  project_id uuid, -- it is not sent after the deletion of the project, and removed with it; null: it is about the team
  action text not null,
  options json not null, -- of the action
  event_id uuid, -- null: a test or a schedule
  event_type text not null,
  notice json not null, -- the content
  state_key text, -- the state that it sets: a newer delivery replaces it; null: it is a message of its own
  -- inapplicable: there was nothing to send
  status text not null default 'pending' check (status in ('pending', 'sent', 'inapplicable', 'failed')),
  given_up boolean not null default false, -- dropped, because too many were waiting
  tries smallint not null default 0, -- since it was requested, or requested again
  attempts json not null default '[]', -- the last 20
  due_at timestamptz(3), -- null: it has ended
  created_at timestamptz(3) not null default now(),
  primary key (team_id, integration_id, id), foreign key (team_id, integration_id) references integration on delete cascade
);
create index delivery_due on delivery (team_id, integration_id, due_at) where due_at is not null;
create index delivery_by_status on delivery (team_id, integration_id, status, id desc);
create index delivery_by_state on delivery (team_id, integration_id, state_key, id) where state_key is not null;
create index delivery_by_project on delivery (project_id) where project_id is not null;
create index delivery_age on delivery (created_at);
create index delivery_pending on delivery (created_at) where status = 'pending';
create index delivery_given_up on delivery (team_id, integration_id) where given_up;
-- Every new delivery asks how many are waiting and which messages are the oldest.
create index delivery_waiting on delivery (team_id, integration_id, action, id) where status = 'pending';
-- A rerun repeats the request to a CI system that its execution was dispatched with.
create index delivery_dispatched on delivery (team_id, (options #>> '{execution,id}'), id) where action = 'dispatch';

-- The comment that an integration keeps on a pull request: one per project, which is edited.
create table pull_request_comment (
  team_id uuid not null, integration_id uuid not null,
  project_id uuid not null references stored_project (id) on delete cascade, pull_request text not null,
  comment_id text, -- of the code host; null: its creation was requested and the answer is unknown
  execution_id uuid not null, -- the newest one that it shows: it never returns to an older one
  revision int not null default 1, -- increases each time that a server begins to write it
  created_at timestamptz(3) not null default now(),
  primary key (team_id, integration_id, project_id, pull_request),
  foreign key (team_id, integration_id) references integration on delete cascade
);
create index pull_request_comment_by_project on pull_request_comment (project_id);

-- Links that show an execution, a project or the state of a branch to anyone who has the address.
create table share (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null,
  kind text not null check (kind in ('execution', 'project', 'badge')), digest bytea not null unique, execution_id uuid,
  branch text, -- of a badge; null: the current default branch
  shows text check (shows in ('status', 'tests')), -- of a badge
  created_by uuid references account on delete set null, created_at timestamptz(3) not null default now(),
  primary key (project_id, id), foreign key (project_id, execution_id) references execution on delete cascade,
  check ((kind = 'execution') = (execution_id is not null)), check ((kind = 'badge') = (shows is not null)),
  check (kind = 'badge' or branch is null)
);

create index share_by_execution on share (project_id, execution_id) where execution_id is not null;

-- ---------- Probes, verifications and searches for culprits ----------
-- Executions that run one test case at one commit. One that serves several searches for a culprit has a row for each of them.
create table probe (
  project_id uuid not null references stored_project (id) on delete cascade, execution_id uuid not null,
  number smallint not null default 1, -- 1: the search that the execution was created for
  kind text not null default 'test' check (kind in ('test', 'commits')),
  test_case int, -- null for kind 'commits'
  task_slug text not null,
  commit text, -- null for kind 'commits'
  result text check (result in ('passed', 'failed', 'no_build', 'no_result')), -- null until ended_at, except for no_build
  flaky boolean not null default false, -- it passed after it had failed in the same run
  fingerprint uuid, -- of the failure, as in case_detail.cause
  verification_id uuid, culprit_search_id uuid, created_at timestamptz(3) not null,
  ended_at timestamptz(3), -- set in the transaction that ends the execution
  primary key (project_id, execution_id, number), foreign key (project_id, execution_id) references execution on delete cascade
);
create index probe_of_verification on probe (project_id, verification_id, execution_id) where verification_id is not null;
create index probe_of_culprit_search on probe (project_id, culprit_search_id, execution_id) where culprit_search_id is not null;
create index probe_by_commit on probe (project_id, test_case, lower(commit)) where kind = 'test';

-- Repeated runs of one test case at one commit, until it is certain how often it fails.
create table verification (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null, test_case int not null,
  commit text not null,
  runs int not null, -- as requested
  release boolean not null, -- a quarantine ends if it passes
  status text not null default 'running'
    check (status in ('running', 'passed', 'flaky', 'failed', 'inconclusive', 'cancelled')),
  passed int not null default 0, failed int not null default 0, no_result int not null default 0,
  no_build int not null default 0, -- included in no_result
  released boolean not null default false, -- it has ended a quarantine
  new_in_execution_id uuid, -- the execution that added the test; null: it was requested
  account_id uuid, -- of the member who requested it
  requested_by text not null, created_at timestamptz(3) not null, ended_at timestamptz(3),
  next_check_at timestamptz(3), -- null once it has ended
  primary key (project_id, id)
);
create index verification_of_case on verification (project_id, test_case, id desc);
create index verification_of_new_tests on verification (project_id, new_in_execution_id, id) where new_in_execution_id is not null;
create index verification_running on verification (project_id) where next_check_at is not null;
create index verification_due on verification (next_check_at) where next_check_at is not null;

-- Runs whose new tests are verified after the end of their execution.
create table new_test_check (
  project_id uuid not null, run_id uuid not null, execution_id uuid not null,
  runs int not null, -- of each test
  is_done boolean not null default false, -- the verifications have begun
  primary key (project_id, run_id), foreign key (project_id, run_id) references test_run on delete cascade
);
create index new_test_check_open on new_test_check (project_id, execution_id) where not is_done;

-- Searches for the commit that broke the test of a bug.
create table culprit_search (
  project_id uuid not null references stored_project (id) on delete cascade, id uuid not null,
  bug_report_id uuid not null, test_case int not null, task_slug text not null,
  bad_execution_id uuid, -- of a failure of the bug; no foreign key: the search outlives it
  good_commit text not null, bad_commit text not null,
  commits json, -- the good commit first, each the first parent of the next; null: not listed yet
  max_probes int not null, max_minutes int not null,
  status text not null default 'running' check (status in ('running', 'completed', 'cancelled')),
  verdict text check (verdict in ('culprit', 'environment', 'undecided')), reason text,
  summary text not null, -- one sentence
  suspects json not null default '[]', -- of the last step: {index, chance}
  culprit int, -- the index in commits
  depth smallint not null default 0, -- the number of automations that led to it
  created_at timestamptz(3) not null, ended_at timestamptz(3),
  due_at timestamptz, -- when a server continues it; null: it has ended
  primary key (project_id, id), foreign key (project_id, bug_report_id) references bug_report on delete cascade
);
create unique index culprit_search_running on culprit_search (project_id, bug_report_id) where status = 'running';
create index culprit_search_by_bug on culprit_search (project_id, bug_report_id, id desc);
-- Searches of the same range share its list of commits and the evidence against a culprit.
create index culprit_search_by_range on culprit_search (project_id, good_commit, bad_commit, id desc);
create index culprit_search_due on culprit_search (due_at) where due_at is not null;
