-- What happens, what is done about it, and who is told.

create table event (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  project_id uuid references project (id) on delete cascade, -- null: it concerns the team
  type text not null,
  depth smallint not null default 0, -- how many automations led to it
  data json not null, -- as it was at that moment
  occurred_at timestamptz(3) not null default now(),
  due_at timestamptz(3), -- when automations look at it; null: they have, or none waits for it
  tries smallint not null default 0,
  primary key (team_id, id)
);

create index event_due on event (due_at) where due_at is not null;
create index event_by_type on event (team_id, type, id desc);
create index event_age on event (occurred_at);

-- Tasks whose last run on a branch was red: the first green after it is told by them.
create table red_task (
  project_id uuid not null references project (id) on delete cascade,
  branch text not null, -- the default branch where an execution names none
  task_slug text not null, -- '': an execution that ended without any task
  since timestamptz(3) not null default now(),
  primary key (project_id, branch, task_slug)
);

create index red_task_age on red_task (since);

alter table execution
  add column depth smallint not null default 0, -- how many automations led to it
  add column rerun_of uuid,
  add column reruns smallint not null default 0; -- how many executions this one repeats, one after the other

alter table case_health
  add column flaky boolean not null default false, -- as last announced
  add column turn uuid; -- the count that has changed it

-- A place outside that events go to.
create table integration (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  kind text not null,
  name text not null,
  enabled boolean not null default true,
  disabled_reason text,
  config json not null, -- what is not secret
  sealed bytea not null, -- what is: a JSON object, bound to team and integration; see src/seal.ts
  failures int not null default 0, -- in a row
  failing_since timestamptz(3),
  paused_until timestamptz(3), -- nothing is sent before
  claim uuid, -- of the server that is sending
  claimed_until timestamptz(3),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

create index integration_key on integration (substring(sealed from 2 for 4));

create table delivery (
  team_id uuid not null,
  integration_id uuid not null,
  id uuid not null, -- the receiver sees it at every attempt
  action text not null,
  options json not null, -- of the action
  event_id uuid, -- null: a test or a schedule
  event_type text not null,
  notice json not null, -- what there is to tell
  state_key text, -- what it sets the state of: a newer one takes its place; null: it is news of its own
  status text not null default 'pending' check (status in ('pending', 'sent', 'failed')),
  due_at timestamptz(3), -- null: it is over
  tries smallint not null default 0, -- since it was asked for
  attempts json not null default '[]', -- the last 20
  created_at timestamptz(3) not null default now(),
  primary key (team_id, integration_id, id),
  foreign key (team_id, integration_id) references integration on delete cascade
);

create index delivery_due on delivery (team_id, integration_id, due_at) where due_at is not null;
create index delivery_by_status on delivery (team_id, integration_id, status, id desc);
create index delivery_by_state on delivery (team_id, integration_id, state_key, id) where state_key is not null;
create index delivery_age on delivery (created_at);
create index delivery_pending on delivery (created_at) where status = 'pending';

create table automation (
  team_id uuid not null references team on delete cascade,
  id uuid not null,
  name text not null,
  enabled boolean not null default true,
  trigger json not null,
  conditions json not null,
  actions json not null,
  event text, -- the trigger's; null: a schedule
  next_run_at timestamptz(3), -- of a schedule that is enabled
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (team_id, id)
);

create index automation_by_event on automation (team_id, event) where enabled;
create index automation_due on automation (next_run_at) where next_run_at is not null;

create table automation_run (
  team_id uuid not null,
  automation_id uuid not null,
  id uuid not null,
  cause text not null check (cause in ('event', 'schedule', 'manual')),
  event_id uuid,
  event_type text,
  project_id uuid,
  status text not null check (status in ('done', 'skipped', 'failed')),
  reason text not null,
  actions json not null, -- what became of each
  created_at timestamptz(3) not null default now(),
  primary key (team_id, automation_id, id),
  foreign key (team_id, automation_id) references automation on delete cascade
);

create unique index automation_run_once on automation_run (team_id, automation_id, event_id) where cause = 'event';
create index automation_run_by_status on automation_run (team_id, automation_id, status, id desc);
create index automation_run_age on automation_run (created_at);
