-- The live stream: what is committed is told once, in an order in which nothing comes later that belongs before.

-- Ids of several servers are committed out of order. The number of its transaction says when a row is final: as soon as
-- none that is smaller is still running, nothing can come before it any more.
alter table event add column xact xid8 not null default '0'; -- a constant: the table is not written anew
alter table event alter column xact set default pg_current_xact_id();
create index event_by_xact on event (project_id, xact, id);

-- What an event tells of, as far as it is one execution; see store/live.ts.
create index event_by_execution on event (
  project_id, (coalesce(data->'execution'->>'id', data->'bugReport'->>'lastExecutionId')), xact, id
);

alter table lease_log add column xact xid8 not null default '0';
create index lease_log_by_xact on lease_log (project_id, lease_id, xact, start);

-- Two transactions may write to one log in another order than they were numbered in: its parts are in order all the same.
-- What is not smaller than xmax is of a database that this one was restored from.
create function number_log_part() returns trigger language plpgsql as $$
begin
  new.xact := greatest(pg_current_xact_id(), (
    select max(l.xact) from lease_log l
    where l.project_id = new.project_id and l.lease_id = new.lease_id
      and l.xact < pg_snapshot_xmax(pg_current_snapshot())));
  return new;
end $$;
create trigger lease_log_number before insert on lease_log for each row execute function number_log_part();
