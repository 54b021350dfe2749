-- What answers in one call are read from: when a test case last passed and failed, whose it is, what is to be counted.

alter table case_health
  add column last_passed_at timestamptz(3), -- completion of the newest run in which it passed
  add column last_failed_at timestamptz(3); -- of the newest in which it failed, be it only before it passed

update case_health h set last_passed_at = seen.passed, last_failed_at = seen.failed
from (
  select b.project_id, r.number, max(t.completed_at) filter (where upper(r.letter) = 'P') as passed,
    max(t.completed_at) filter (where r.letter not in ('p', 's')) as failed
  from case_result b
  join test_run t on t.project_id = b.project_id and t.id = b.run_id and t.remembered,
    lateral unnest(b.test_cases, string_to_array(b.statuses, null)) as r (number, letter)
  group by b.project_id, r.number
) seen
where h.project_id = seen.project_id and h.test_case = seen.number;

-- Most cases are nobody's: the index costs nothing for them.
create index test_case_by_owner on test_case (project_id, owner, number) where owner is not null;

-- Runs are counted in the order in which they were completed, which need not be that of their arrival.
drop index test_run_to_remember;
create index test_run_to_remember on test_run (project_id, completed_at, id) where not remembered;
