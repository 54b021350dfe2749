-- Uploads that were refused, or accepted with warnings, of the last day: for who wonders where a report is.

create table upload (
  project_id uuid not null references project (id) on delete cascade,
  id uuid not null, -- of the moment of the answer
  outcome text not null check (outcome in ('refused', 'warned')),
  status_code smallint not null,
  message text, -- null: accepted
  warnings json not null,
  parameters json not null, -- as they were given
  bytes bigint, -- as sent; null: nothing of it was read, and its length is not known
  user_agent text,
  client_address text not null,
  key_leading text not null,
  request_id text not null,
  execution_id uuid, -- of what was accepted; it may have been deleted since
  task_slug text,
  times int not null default 1, -- requests beyond the rate limit, one after the other, are one row
  last_answered_at timestamptz(3) not null,
  answered_at timestamptz(3) not null,
  primary key (project_id, id)
);

create index upload_age on upload (id);

-- For the figures of the server: what has ended in the last minutes.
create index lease_ended on lease (ended_at) where ended_at is not null;
