-- The files of a task that is split while it runs: each shard takes the next batch when it has run the one before.

create table file_queue (
  project_id uuid not null,
  execution_id uuid not null,
  task_slug text not null,
  shards smallint not null,
  runs smallint not null, -- how many the durations are from; 0: nothing is known of the task
  files text[] not null, -- longest first; the four run in step
  durations int[] not null, -- milliseconds
  places smallint[] not null, -- the shard that has the file; 0: it waits
  batches smallint[] not null, -- the batch of its shard that it is in, from 1; 0: it waits
  holders text[] not null, -- by shard: the lease or CI job that takes batches; '': none has yet
  acknowledged smallint[] not null, -- by shard: its batches up to this one have been run
  created_at timestamptz(3) not null default now(),
  primary key (project_id, execution_id, task_slug, shards),
  foreign key (project_id, execution_id) references execution on delete cascade
);
