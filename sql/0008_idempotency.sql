-- Requests with an Idempotency-Key: claimed by whoever runs one, for as long as he says that he is at it.

alter table idempotency
  add column claim uuid, -- of the request that is running
  add column claimed_until timestamptz(3), -- extended while it runs; after that, it has died
  add column acting boolean not null default false; -- it has begun what cannot be taken back
