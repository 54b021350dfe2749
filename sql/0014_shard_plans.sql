-- Which file of a task goes to which shard: decided once, so that a retried shard gets its slice again.

create table shard_plan (
  project_id uuid not null,
  execution_id uuid not null,
  task_slug text not null,
  shards smallint not null,
  runs smallint not null, -- how many the durations are from; 0: nothing is known of the task
  files text[] not null, -- the three run in step
  durations int[] not null, -- milliseconds
  places smallint[] not null, -- the shard of each file, from 1
  created_at timestamptz(3) not null default now(),
  primary key (project_id, execution_id, task_slug, shards),
  foreign key (project_id, execution_id) references execution on delete cascade
);
