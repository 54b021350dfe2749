-- Where a test case was before its file moved: branches that have not moved it yet still mean the same case.
create table test_case_alias (
  project_id uuid not null,
  identity uuid primary key, -- as in test_case, which holds the newest place
  number int not null, -- test_case.number
  foreign key (project_id, number) references test_case on delete cascade
);

create index test_case_alias_by_case on test_case_alias (project_id, number);
