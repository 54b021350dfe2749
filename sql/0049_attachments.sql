-- Attachments: files that explain the results of a run. Their content is in a store outside of the database.

-- Content by its hash, once for a project. Its owner is the project, under another name than project_id: when a project is
-- deleted, the rows of tables with that column are removed, and these must stay until the store has removed the content.
create table attachment_content (
  owner_id uuid not null,
  sha256 bytea not null,
  bytes bigint not null,
  is_stored boolean not null default false, -- false: the store has it not yet, or not any more
  claimed_at timestamptz(3) not null default now(), -- when an upload has last relied on it: it is not removed soon after
  primary key (owner_id, sha256)
);

-- A file of a run. Its path is the name under which results refer to it.
create table attachment (
  project_id uuid not null,
  id uuid not null,
  run_id uuid not null,
  shard smallint not null, -- the upload that refers to it, as in attempt; attempt 0: it came before any report
  attempt smallint not null,
  path text not null,
  name text not null,
  sha256 bytea not null,
  bytes bigint not null,
  media_type text not null, -- by its content; what a report says of it is not trusted
  preview text, -- the end of a text
  created_at timestamptz(3) not null default now(),
  primary key (project_id, id),
  unique (project_id, run_id, path, shard, attempt, sha256),
  foreign key (project_id, run_id) references test_run on delete cascade
);

create index attachment_page on attachment (project_id, run_id, id) include (bytes);
create index attachment_by_content on attachment (project_id, sha256);

-- A result of a report that names a file, whether the file is there or not.
create table attachment_reference (
  project_id uuid not null,
  run_id uuid not null,
  test_case int not null, -- test_case.number
  shard smallint not null,
  attempt smallint not null,
  position smallint not null, -- in the order of the report
  path text not null,
  name text not null,
  is_kept boolean not null, -- false: the file is not stored, because the case passed
  primary key (project_id, run_id, test_case, shard, attempt, position),
  foreign key (project_id, run_id) references test_run on delete cascade
);

create index attachment_reference_path on attachment_reference (project_id, run_id, path);

-- Content that may have no attachment: it is new, or one of its attachments was deleted. A queue without a unique key, so that
-- no transaction waits for another one that deletes attachments with the same content.
create table attachment_loose_content (
  owner_id uuid not null,
  sha256 bytea not null,
  since timestamptz(3) not null default now()
);

create index attachment_loose_content_since on attachment_loose_content (since);
create index attachment_loose_content_key on attachment_loose_content (owner_id, sha256);

create function queue_loose_content() returns trigger language plpgsql as $$
begin
  insert into attachment_loose_content (owner_id, sha256) select distinct project_id, sha256 from deleted;
  return null;
end $$;

create trigger attachment_deleted after delete on attachment
  referencing old table as deleted for each statement execute function queue_loose_content();
