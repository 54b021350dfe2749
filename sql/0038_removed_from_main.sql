-- A branch that began before a test was deleted still runs it: the test stays removed until the default branch has it again.
alter table case_health
  add column removed_main_runs int; -- main_runs when the test was found to be removed: it is removed while main_runs is the same
update case_health set removed_main_runs = main_runs where removed_run_id = last_run_id;
