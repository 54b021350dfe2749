-- A runner that cannot run a task says so: another runner gets the task, and a runner that fails again and again is paused.

alter table lease
  drop constraint lease_status_check,
  -- returned: its runner gave it back; infrastructure: its runner could not run it
  add constraint lease_status_check check (status in (
    'queued', 'offered', 'running', 'reported', 'failed', 'cancelled', 'lost', 'returned', 'infrastructure', 'timed_out')),
  add column avoid text[] not null default '{}'; -- the runners that could not run it, one entry for each time

alter table runner
  add column failures smallint not null default 0, -- infrastructure failures in a row that no other runner had with the same task
  add column paused_at timestamptz(3), -- it gets no new tasks
  add column paused_until timestamptz(3), -- null: until somebody resumes it
  add column pause_reason text;
