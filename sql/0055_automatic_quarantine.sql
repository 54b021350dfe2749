-- The name of the automation that quarantined the test case; null: a person or an API key did.
alter table quarantine add column automation text;
