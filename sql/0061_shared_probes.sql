-- A probe may run the test cases of several searches for a culprit: it has a row for each of them.
alter table probe add column number smallint not null default 1; -- 1: that for which its execution was created
alter table probe drop constraint probe_pkey, add primary key (project_id, execution_id, number);

-- Searches of the same range take over its commits, and a culprit that one of them has proven is more probable to the others.
create index culprit_search_by_range on culprit_search (project_id, good_commit, bad_commit, id desc);
