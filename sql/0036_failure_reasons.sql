-- Of a case that was known to be flaky: how many of its results on this branch have failed in a row, this one among them. At
-- failure.flake_rate that has odds: likely enough, the failure is flaky, else it is new. Null: the rate was not asked.
alter table failure add column in_a_row smallint;
