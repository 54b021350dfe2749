-- The suite first, because the cases of one come together: one hash of both cost new cases three times as much. Hashes, because
-- texts may be longer than an index takes.
drop index test_case_by_name;
create index test_case_by_name on test_case (project_id, hashtext(suite), hashtext(name));
