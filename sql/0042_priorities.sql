-- What is more urgent is handed to runners first, and tasks of one group run one after the other.

alter table lease
  add column priority smallint not null default 0, -- -100 to 100: the highest goes first
  add column concurrency_group text; -- one at a time runs of the project's tasks of one group

create index lease_concurrency_group on lease (project_id, concurrency_group)
  where concurrency_group is not null and status in ('queued', 'offered', 'running');
