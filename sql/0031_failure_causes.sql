-- The fingerprint of a failed result, by what its message says (rules/fingerprint.ts). Failures of an execution that have the
-- same one are grouped into a cause by the database, however many they are. It is stored when the report arrives. Results that
-- were stored before have none: until they are deleted by age, their failures are grouped by the beginning of their message.
alter table case_detail add column cause uuid;
