-- A test that its task does not report any more is removed: neither broken nor flaky, until it is reported again.

alter table case_health
  add column removed_run_id uuid; -- the last run that had it, as it was found to be removed; removed while last_run_id is the same

alter table bug_change drop constraint bug_change_cause_check;
alter table bug_change add constraint bug_change_cause_check
  check (cause in ('opened', 'api', 'regression', 'clean_runs', 'merge', 'removed'));
