-- Whether a new test case is one that has moved is asked by its suite and name: all cases of the project were gone through
-- for that. Hashes, because texts may be longer than an index takes; the suite first, because the cases of one come together.
create index test_case_by_name on test_case (project_id, hashtext(suite), hashtext(name));
