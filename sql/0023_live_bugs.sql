-- How many bugs are open is told by pages: counted in an index instead of reading each of them.
create index bug_report_live on bug_report (project_id, severity, regressed)
  where status in ('open', 'in_progress') and merged_into is null;
