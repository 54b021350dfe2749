-- Runs in which many tests passed only on retry may be those of a machine that is unhealthy: see BAD_RUN (rules/incident.ts).
create index test_run_of_machine on test_run (project_id, id) where flaky >= 5;
