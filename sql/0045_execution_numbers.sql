-- Executions are numbered, so that one without a key of its CI system has a name: "main #128". A sequence, because no upload
-- may wait for another one: the numbers of a project ascend, and those in between belong to other projects.

create sequence execution_number;
alter table execution add column number bigint;
update execution e set number = n.number
from (select project_id, id, row_number() over (order by id) as number from execution) n
where e.project_id = n.project_id and e.id = n.id;
select setval('execution_number', (select count(*) + 1 from execution), false);
alter table execution alter column number set default nextval('execution_number'), alter column number set not null;
