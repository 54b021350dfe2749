-- By itself: a transaction that locks both tables might meet one that has them the other way round.
create trigger test_case_deleted after delete on test_case
  referencing old table as former for each statement execute function renew_names();
