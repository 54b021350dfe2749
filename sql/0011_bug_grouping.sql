-- Failures are one bug by what they say, by where they happen, or by being of one flaky test; bugs are listed sorted.

alter table bug_fingerprint
  add column kind text not null default 'message' check (kind in ('message', 'case', 'flaky', 'outage', 'automation'));
update bug_fingerprint set kind = 'outage' where exception_type = 'Outage';
update bug_fingerprint set kind = 'automation' where message like 'Automation: %' and exception_type is null;

-- Of the last occurrence on the default branch, which is what events tell of.
alter table bug_report
  add column home_branch text,
  add column home_commit text,
  add column home_execution_id uuid;
update bug_report b set (home_branch, home_commit, home_execution_id) = (
  select e.branch, e.commit, e.id
  from bug_occurrence o
  join test_run r on r.project_id = o.project_id and r.id = o.run_id
  join execution e on e.project_id = r.project_id and e.id = r.execution_id
  join project p on p.id = e.project_id
  where o.project_id = b.project_id and o.bug_report_id = b.id and (e.branch is null or e.branch = p.default_branch)
  order by o.run_id desc limit 1);

-- A list of several statuses takes the first of each: the status leads in all of them.
create index bug_report_by_occurrences on bug_report (project_id, status, occurrences desc, number desc)
  where merged_into is null;
create index bug_report_by_last_seen
  on bug_report (project_id, status, coalesce(last_seen_at, '-infinity') desc, number desc) where merged_into is null;
create index bug_report_by_severity
  on bug_report (project_id, status,
    array_position(array['trivial', 'minor', 'major', 'critical'], severity) desc, number desc)
  where merged_into is null;
