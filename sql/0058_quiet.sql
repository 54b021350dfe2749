-- A server that was restored from a backup is quiet until `assay admin resume`: nothing is sent, no schedule and no automation runs,
-- no task is handed to runners, and nothing is deleted for its age.
alter table instance
  add column quiet_since timestamptz(3), -- null: it is not quiet
  add column restored_to timestamptz(3); -- when the backup was taken that it was restored from last; null: it never was
