-- Links and badges for whoever has their address: an execution, a project, or a picture of how a branch stands.

create table share (
  project_id uuid not null references project (id) on delete cascade,
  id uuid not null,
  kind text not null check (kind in ('execution', 'project', 'badge')),
  digest bytea not null unique, -- SHA-256 of the token in the address, which is stored nowhere
  execution_id uuid,
  branch text, -- of a badge; null: the default branch, whichever it is
  shows text check (shows in ('status', 'tests')), -- of a badge
  created_by uuid references account on delete set null,
  created_at timestamptz(3) not null default now(),
  primary key (project_id, id),
  foreign key (project_id, execution_id) references execution on delete cascade,
  check ((kind = 'execution') = (execution_id is not null)),
  check ((kind = 'badge') = (shows is not null)),
  check (kind = 'badge' or branch is null)
);

-- What goes when an execution is deleted, or an account.
create index share_by_execution on share (project_id, execution_id) where execution_id is not null;
create index share_by_account on share (created_by) where created_by is not null;
