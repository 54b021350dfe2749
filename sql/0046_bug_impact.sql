-- The impact of an open bug: the executions of the last 14 days in which it occurred. It is counted beside the uploads
-- (store/bug_evidence.ts), because a bug may have thousands of occurrences.

alter table bug_report
  add column impact int not null default 0,
  add column impact_due_at timestamptz(3); -- when it is counted next; null: it does not change any more

update bug_report set impact_due_at = now() where merged_into is null and status in ('open', 'in_progress');

create index bug_report_by_impact on bug_report (project_id, status, impact desc, number desc) where merged_into is null;
create index bug_report_impact_due on bug_report (impact_due_at) where impact_due_at is not null;

create function schedule_bug_impact() returns trigger language plpgsql as $$
begin
  new.impact_due_at := now();
  return new;
end $$;

create trigger bug_report_impact before update of status, occurrences on bug_report for each row
  when (old.status is distinct from new.status or old.occurrences is distinct from new.occurrences)
  execute function schedule_bug_impact();
create trigger bug_report_first_impact before insert on bug_report for each row execute function schedule_bug_impact();
