-- The flaky test cases are listed with the flakiest first: the index that knows them has them in that order as well.
drop index case_health_flaky;
create index case_health_flaky on case_health (project_id, flake_rate, test_case) where flaky;
