-- What newcomers have skipped or dismissed, and which data is only a sample.

create table onboarding (
  project_id uuid primary key references project (id) on delete cascade,
  skipped text[] not null default '{}',
  dismissed boolean not null default false
);

alter table execution add column sample boolean not null default false;
alter table test_case add column sample boolean not null default false;
alter table bug_report add column sample boolean not null default false;
create index execution_sample on execution (project_id) where sample;
