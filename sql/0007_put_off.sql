-- What a loop could not do is put off, for longer each time; what waits for a receiver that is away is bounded.

-- Beside the items and not in them: one that cannot even be written is put off all the same. Mostly empty.
create table put_off (
  loop text not null, -- which one
  item text not null, -- an id, or what else names it
  tries smallint not null, -- failures of ours, one after the other
  stalls smallint not null, -- how often the database had no time for it, which is nobody's fault
  due_at timestamptz(3) not null, -- nobody takes it before
  primary key (loop, item)
);

create index put_off_age on put_off (due_at);

alter table delivery
  add column given_up boolean not null default false; -- more were waiting than may wait

create index delivery_given_up on delivery (team_id, integration_id) where given_up;
-- How many wait, and which of them are the oldest messages, is asked for with every new one.
create index delivery_waiting on delivery (team_id, integration_id, action, id) where status = 'pending';
