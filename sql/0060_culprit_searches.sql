-- Searches for the commit that broke the test of a bug. Their probes are executions (table probe).
create table culprit_search (
  project_id uuid not null references stored_project (id) on delete cascade,
  id uuid not null,
  bug_report_id uuid not null,
  test_case int not null, -- test_case.number
  task_slug text not null,
  bad_execution_id uuid, -- that of a failure of the bug; no foreign key: the search outlives it
  good_commit text not null,
  bad_commit text not null,
  commits json, -- the good commit first, each the first parent of the next; null: not listed yet
  max_probes int not null,
  max_minutes int not null,
  status text not null default 'running' check (status in ('running', 'completed', 'cancelled')),
  verdict text check (verdict in ('culprit', 'environment', 'undecided')),
  reason text,
  summary text not null, -- one sentence
  suspects json not null default '[]', -- of the last step: {index, chance}
  culprit int, -- the index in commits
  depth smallint not null default 0, -- automations that led to it
  created_at timestamptz(3) not null,
  ended_at timestamptz(3),
  due_at timestamptz, -- when a server looks at it next; null: it has ended
  primary key (project_id, id),
  foreign key (project_id, bug_report_id) references bug_report on delete cascade
);

create index culprit_search_by_bug on culprit_search (project_id, bug_report_id, id desc);
create unique index culprit_search_running on culprit_search (project_id, bug_report_id) where status = 'running';
create index culprit_search_due on culprit_search (due_at) where due_at is not null;

-- The results of a test case on the commits of a range.
create index probe_by_commit on probe (project_id, test_case, lower(commit)) where kind = 'test';
