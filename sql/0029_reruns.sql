-- A rerun is a further attempt of the build that it repeats, and no build of its own.

alter table execution
  add column build_id uuid, -- of a rerun: the execution that was repeated first; null: it is a build itself
  add column repeated_status text check (repeated_status in ('passed', 'failed', 'timed_out')); -- of a build, with the
  -- results of its reruns; null: as its own status has it

with recursive chain as (
  select project_id, id, rerun_of as build_id, rerun_of from execution where rerun_of is not null
  union all
  select c.project_id, c.id, e.rerun_of, e.rerun_of from chain c
  join execution e on e.project_id = c.project_id and e.id = c.rerun_of where e.rerun_of is not null
)
update execution e set build_id = c.build_id
from (select distinct on (project_id, id) * from chain order by project_id, id, build_id) c
where e.project_id = c.project_id and e.id = c.id;

create index execution_by_build on execution (project_id, build_id, id) where build_id is not null;

-- What an engine was asked to run is asked for again by a rerun.
create index delivery_dispatched on delivery (team_id, (options #>> '{execution,id}'), id) where action = 'dispatch';
