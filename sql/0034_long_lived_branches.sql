-- Branches that live beside the default one, as those of releases: each is compared with its own builds. In a pattern * stands
-- for any text.
alter table project add column long_lived_branches text[] not null default '{release/*,release-*,releases/*}';

create function is_long_lived(branch text, patterns text[]) returns boolean language sql immutable parallel safe as $$
  select coalesce(bool_or(branch like
    replace(replace(replace(replace(pattern, '\', '\\'), '%', '\%'), '_', '\_'), '*', '%')), false)
  from unnest(patterns) as pattern
$$;
