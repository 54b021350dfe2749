-- Failures that are one bug, and what people do about it.

create table bug_report (
  project_id uuid not null references project (id) on delete cascade,
  id uuid not null,
  number int not null, -- from 1, without gaps
  title text not null,
  description text not null default '',
  status text not null check (status in ('open', 'in_progress', 'resolved', 'ignored')),
  severity text not null check (severity in ('critical', 'major', 'minor', 'trivial')),
  source text not null check (source in ('automatic', 'manual')),
  occurrences int not null default 0,
  first_seen_at timestamptz(3),
  last_seen_at timestamptz(3),
  first_execution_id uuid, -- no foreign key: the bug outlives its executions
  last_execution_id uuid,
  branch text, -- of the last occurrence, as is the commit
  commit text,
  assignee text,
  labels text[] not null default '{}',
  external_url text,
  regressed boolean not null default false,
  fixed_in_commit text,
  merged_into uuid,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null,
  resolved_at timestamptz(3),
  primary key (project_id, id),
  unique (project_id, number)
);

create index bug_report_by_status on bug_report (project_id, status, number desc);

-- What failures have to look like to be this bug, and what that was made of: the answer to why they are one.
create table bug_fingerprint (
  project_id uuid not null,
  digest uuid not null,
  bug_report_id uuid not null,
  version smallint not null,
  exception_type text,
  message text not null, -- normalised
  frames text[] not null,
  test text,
  created_at timestamptz(3) not null,
  primary key (project_id, digest),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade
);

create index bug_fingerprint_by_bug on bug_fingerprint (project_id, bug_report_id);

-- The test cases of a bug.
create table bug_case (
  project_id uuid not null,
  bug_report_id uuid not null,
  test_case int not null, -- test_case.number
  clean int not null default 0, -- runs on the default branch in a row in which it passed
  primary key (project_id, bug_report_id, test_case),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade
);

create index bug_case_by_case on bug_case (project_id, test_case);

create table bug_occurrence (
  project_id uuid not null,
  bug_report_id uuid not null,
  run_id uuid not null,
  test_case int not null, -- test_case.number
  message text,
  seen_at timestamptz(3) not null,
  primary key (project_id, bug_report_id, run_id, test_case),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade,
  foreign key (project_id, run_id) references test_run on delete cascade
);

create index bug_occurrence_by_run on bug_occurrence (project_id, run_id);

-- Every change of status, and by what.
create table bug_change (
  project_id uuid not null,
  bug_report_id uuid not null,
  id uuid not null,
  from_status text,
  to_status text not null,
  cause text not null check (cause in ('opened', 'api', 'regression', 'clean_runs', 'merge')),
  changed_at timestamptz(3) not null,
  primary key (project_id, bug_report_id, id),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade
);
