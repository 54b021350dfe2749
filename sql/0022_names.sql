-- Whether a new test case is one that has moved is asked by its name: all cases of the project were gone through for that.
create index test_case_by_name on test_case
  (project_id, hashtextextended(task_slug || E'\n' || suite || E'\n' || name, 0));
