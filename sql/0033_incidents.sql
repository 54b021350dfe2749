-- incident: many tests fail at once for a cause outside of the code (rules/incident.ts). It blames nobody, and is not counted in
-- the health of the cases.
alter table failure drop constraint failure_blame_check;
alter table failure add constraint failure_blame_check
  check (blame in ('new', 'flaky', 'main', 'still', 'quarantined', 'incident'));

-- How an incident was recognised: by a cause that many tests have in common, by the other runs of the machine, or by the tests of
-- the run that passed when they were tried again. Null: it is none.
alter table failure add column incident text check (incident in ('cause', 'machine', 'retries'));
alter table failure add constraint failure_incident_check1 check ((blame = 'incident') = (incident is not null));

-- Most projects have no machine that is ill: then nothing more is looked for.
create index failure_of_machine on failure (project_id, run_id) where incident in ('machine', 'retries');
