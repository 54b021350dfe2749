-- Servers keep which number a test case has. What is added leaves that as it is; where a case goes, or a former place of one
-- becomes another one's, the row of the project is written anew, which tells them to look again.
alter table project add column names_version integer not null default 0;

create function renew_names() returns trigger language plpgsql as $$
begin
  update project set names_version = names_version + 1 where id in (select project_id from former);
  return null;
end $$;

create trigger test_case_deleted after delete on test_case
  referencing old table as former for each statement execute function renew_names();
create trigger test_case_alias_updated after update on test_case_alias
  referencing old table as former for each statement execute function renew_names();
create trigger test_case_alias_deleted after delete on test_case_alias
  referencing old table as former for each statement execute function renew_names();
