-- Deleted projects and teams. Their rows are removed in batches after the deletion (src/work/purge.ts). Until then the row of the
-- project or team is a tombstone, which no statement finds: the table has another name, and its old name is a view without
-- tombstones. A column that is added to one of these tables is added to its view as well; foreign keys refer to the tables.

alter table project rename to stored_project;
alter table stored_project
  add column deleted_at timestamptz(3), -- null: it is not deleted
  add column deleted_by text; -- as the audit log calls who has deleted it
create index stored_project_deleted on stored_project (deleted_at) where deleted_at is not null;

alter table team rename to stored_team;
alter table stored_team
  add column deleted_at timestamptz(3),
  add column deleted_by text;
create index stored_team_deleted on stored_team (deleted_at) where deleted_at is not null;

-- xmin identifies the version of the row: see src/store/case_index_version.ts.
create view project as
  select xmin, team_id, id, name, default_branch, execution_timeout_minutes, created_at, retention_days, long_lived_branches
  from stored_project where deleted_at is null;
create view team as select id, name, created_at from stored_team where deleted_at is null;

-- A delivery is not sent after the deletion of the project that it is about, and is removed with it.
alter table delivery add column project_id uuid; -- null: it is about the team, or older than this migration and sent
update delivery d set project_id = e.project_id from event e
  where d.status = 'pending' and e.team_id = d.team_id and e.id = d.event_id;
update delivery d set project_id = (options #>> '{execution,projectId}')::uuid
  where d.status = 'pending' and d.project_id is null and d.options #>> '{execution,projectId}' is not null;
create index delivery_by_project on delivery (project_id) where project_id is not null;
create index automation_run_by_project on automation_run (project_id) where project_id is not null;
create index api_key_by_project on api_key (project_id) where project_id is not null;
