-- Gates: which failures of an upload were forgiven.

alter table attempt
  add column failed_cases int, -- failed test cases of the report; null: stored before this was known
  add column gate json; -- the decision of the gate that the upload asked for; null: it asked for none

-- How many failures of the run the gates of its uploads have forgiven.
alter table test_run add column forgiven int not null default 0;

-- Few runs have any: the days of a project are read without the others.
create index test_run_forgiven on test_run (project_id, completed_at) where forgiven > 0;
