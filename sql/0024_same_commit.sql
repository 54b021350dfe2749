-- The same as before, what costs least first: most of what it is asked about is equal, or begins otherwise.
create or replace function is_same_commit(a text, b text) returns boolean language sql immutable parallel safe as $$
  select lower(a) = lower(b)
    or (starts_with(lower(a), lower(b)) or starts_with(lower(b), lower(a)))
      and a ~ '^[0-9a-fA-F]{7,64}$' and b ~ '^[0-9a-fA-F]{7,64}$'
$$;
