-- What is more urgent is handed to runners first.

alter table lease
  add column priority smallint not null default 0; -- -100 to 100: the highest goes first
