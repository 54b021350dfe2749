-- A probe may run the test cases of several searches for a culprit: it has a row for each of them.
alter table probe add column number smallint not null default 1; -- 1: that for which its execution was created
alter table probe drop constraint probe_pkey, add primary key (project_id, execution_id, number);
