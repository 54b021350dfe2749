-- Servers keep which number a test case has. What is added leaves that as it is; where a case goes, or a former place of one
-- becomes another one's, the project's row here is written anew, which tells them to look again. A row of its own: whoever
-- makes a key has that of the project, and waits for uploads.
create function renew_names() returns trigger language plpgsql as $$
begin
  insert into names_version (project_id)
    select distinct former.project_id from former join project p on p.id = former.project_id
    on conflict (project_id) do update set version = names_version.version + 1;
  return null;
end $$;

create trigger test_case_alias_updated after update on test_case_alias
  referencing old table as former for each statement execute function renew_names();
create trigger test_case_alias_deleted after delete on test_case_alias
  referencing old table as former for each statement execute function renew_names();

create table names_version (
  project_id uuid primary key references project (id) on delete cascade,
  version bigint not null default 1
);
