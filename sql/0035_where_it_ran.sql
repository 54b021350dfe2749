-- Where a run ran: shards and retries of a run may run on different machines.

alter table attempt
  add column host text, -- the name of the machine; null: unknown, as are the others
  add column system text, -- the operating system and architecture, such as "linux x64"
  add column image text; -- the image of the machine or container

alter table case_detail
  add column shard smallint; -- the shard that the result is from; null: the run is not sharded, or stored before this migration
