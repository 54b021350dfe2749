-- Named keys of a project: each has a scope and may expire. The project's own key has none, may do everything, and stays the only
-- one of its kind. A runner has a key of its own, which it gets for the key that it was started with.
alter table api_key
  add column scope text check (scope in ('read', 'upload', 'run', 'triage', 'runner')), -- null: everything that its kind may do
  add column parent_id uuid, -- of a runner's key: the key that it was made with, and with which it is revoked
  add column expires_at timestamptz(3),
  add constraint api_key_scope_check1 check (scope is null or project_id is not null),
  add constraint api_key_parent_check check ((scope is not distinct from 'runner') = (parent_id is not null));

drop index api_key_one_live_per_project;
create unique index api_key_one_live_per_project on api_key (project_id) where revoked_at is null and scope is null;
create index api_key_named on api_key (project_id, id) where scope is not null;
create index api_key_by_parent on api_key (parent_id) where parent_id is not null;
