-- Texts that a team knows not to be the fault of a test: a failure that contains one blames nobody (rules/infrastructure.ts).
create table infrastructure_rule (
  team_id uuid not null references stored_team (id) on delete cascade,
  id uuid not null,
  name text not null,
  kind text not null check (kind in ('text', 'regex')),
  pattern text not null,
  url text, -- where people read more; null: nowhere
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

-- The rule that a failure matched, with its name and address at that time: the rule may be deleted. A failure that is quarantined
-- as well stays quarantined.
alter table failure
  add column rule_id uuid,
  add column rule_name text,
  add column rule_url text;
alter table failure drop constraint failure_incident_check;
alter table failure add constraint failure_incident_check check (incident in ('cause', 'machine', 'retries', 'rule'));

alter table test_run
  add column infrastructure int not null default 0, -- failures that matched a rule
  add column infrastructure_retries int[]; -- test_case.number: passed after a failure that matched a rule; null: none

alter table bug_fingerprint drop constraint bug_fingerprint_kind_check;
alter table bug_fingerprint add constraint bug_fingerprint_kind_check
  check (kind in ('message', 'case', 'flaky', 'outage', 'automation', 'infrastructure'));
